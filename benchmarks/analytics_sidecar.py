"""How many pages a second `amicrawl sidecar` tells by their bytes, and each of its detectors on its own.

    python -m benchmarks.analytics_sidecar [--pages 6000] [--rounds 3]

Pages of 11 kB in fourteen languages and their character sets, in two WARC files, one a processor. The
peer is what warc-metadata-sidecar calls (`peers/sidecar_detectors`), a process a file, in turns with us.
Medians of the rounds go to standard output as JSON; what it takes to start is measured with two pages
and taken off. Three pages in four declare their character set, as about as many do on the web; the rest
is told by statistics.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import statistics
import sys
import tempfile
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.index.sidecar.detectors import installed_detectors
from amicrawl.archive.index.sidecar.findings import Charset
from amicrawl.archive.index.sidecar.media_type import Signatures
from amicrawl.archive.index.sidecar.subject import Subject
from amicrawl.archive.index.sidecar.text import CharsetDetector
from amicrawl.record.warc import GZIP_WINDOW
from benchmarks.measure import Cost, run
from benchmarks.peer import peer_command
from benchmarks.report import machine
from benchmarks.soft404.wordings import WORDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amicrawl.archive.index.sidecar.detectors import TypeDetector

ROOT = Path(__file__).parent.parent
PEER = ROOT / "benchmarks" / "peers" / "sidecar_detectors"
PAGE = 11_000
SECONDS = 1.0
_CHARSETS = {
    "en": ("ascii",),
    "ja": ("utf-8", "shift_jis", "euc_jp"),
    "zh": ("utf-8", "gb18030"),
    "ko": ("utf-8", "euc_kr"),
    "pl": ("utf-8", "iso8859-2"),
    "ru": ("utf-8", "cp1251"),
    "uk": ("utf-8", "cp1251"),
    "tr": ("utf-8", "cp1254"),
}
_HEADS = (
    '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "http://www.w3.org/TR/html4/loose.dtd">',
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">',
    "<!DOCTYPE html>",
)


class Made(NamedTuple):
    """A page, and what is true of it."""

    body: bytes
    charset: str
    language: str
    short: bytes
    """The first words of its text."""


def page(number: int) -> tuple[bytes, str]:
    """Return page *number*, and the character set it is in; three in four declare it."""
    made = page_in(number, declares=number % 4 > 0)
    return made.body, made.charset


def page_in(number: int, *, declares: bool) -> Made:
    """Return page *number*."""
    source = random.Random(number)
    language = source.choice(sorted(WORDINGS))
    words = WORDINGS[language]
    charset = source.choice(_CHARSETS.get(language, ("utf-8", "cp1252")))
    title = source.choice(words.subjects)
    declared = f'<meta charset="{charset}">' if declares else ""
    pieces = [source.choice(_HEADS), f"<html><head>{declared}<title>{title}</title></head><body>"]
    size = 0
    while size < PAGE:
        prose = " ".join(source.choices(words.prose, k=3))
        piece = f'<p class="text">{prose} <a href="/x/{source.randrange(10**6)}">{title}</a></p>\n'
        size += len(piece.encode(charset, "replace"))
        pieces.append(piece)
    pieces.append("</body></html>")
    short = " ".join(source.choices(words.prose, k=2)).encode(charset, "replace")
    return Made("".join(pieces).encode(charset, "xmlcharrefreplace"), charset, language, short)


def write_warc(path: Path, numbers: Sequence[int]) -> None:
    """Write the pages *numbers* to *path* as responses."""
    with path.open("wb") as file:
        for number in numbers:
            body, _ = page(number)
            http = (
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
                + body
            )
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
                f"WARC-Date: 2024-04-24T00:00:00Z\r\nWARC-Target-URI: http://www.example.org/{number}\r\n"
                f"Content-Type: application/http\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            packer = zlib.compressobj(6, zlib.DEFLATED, GZIP_WINDOW)
            file.write(packer.compress(head.encode() + http + b"\r\n\r\n") + packer.flush())


def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(description="Pages a second that are told by their bytes.")
    parser.add_argument("--pages", type=int, default=6000, help="pages; a tenth is for the peer")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": machine(), "pages": options.pages, "bytes_per_page": PAGE}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        many, few = options.pages, options.pages // 10
        kinds: dict[str, tuple[int, Callable[[Sequence[Path]], list[str]]]] = {
            "amicrawl_sidecar": (many, lambda files: _ours(files, scratch / "meta")),
            "amicrawl_sidecar_without_soft_404": (
                many,
                lambda files: [*_ours(files, scratch / "meta"), "--without", "soft-404"],
            ),
            "peer_detectors": (few, _theirs(peer_command("sidecar_detectors", "python"))),
        }
        sets = {count: _files(scratch, count) for count in {many, few, 2}}
        turns: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, (count, command) in kinds.items():
                shutil.rmtree(scratch / "meta", ignore_errors=True)
                start_up = _cost(command(sets[2]), scratch)
                shutil.rmtree(scratch / "meta", ignore_errors=True)
                turns[kind].append(_turn(count, _cost(command(sets[count]), scratch), start_up))
    for kind, each in turns.items():
        report[kind] = {name: statistics.median(turn[name] for turn in each) for name in each[0]}
        report[kind]["rounds"] = each
    peer = report["peer_detectors"]
    for kind in list(kinds)[:2]:
        report[kind]["times_the_peer"] = report[kind]["pages_per_cpu_s"] / peer["pages_per_cpu_s"]
    report["detectors_pages_per_cpu_s"] = dict(_each_detector())
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


def _files(scratch: Path, count: int) -> list[Path]:
    """Return two files with *count* pages between them."""
    files = [scratch / f"pages-{count}-{half}.warc.gz" for half in range(2)]
    for half, file in enumerate(files):
        write_warc(file, range(half * count // 2, (half + 1) * count // 2))
    return files


def _ours(files: Sequence[Path], out: Path) -> list[str]:
    return [sys.executable, "-m", "amicrawl", "sidecar", *map(str, files), "-o", str(out), "-j", "2"]


def _theirs(python: str) -> Callable[[Sequence[Path]], list[str]]:
    """Return what makes the command of the peer: a process a file, at the same time."""
    script = f"{shlex.quote(python)} {shlex.quote(str(PEER / 'characterise.py'))}"

    def command(files: Sequence[Path]) -> list[str]:
        jobs = " & ".join(f"{script} {shlex.quote(str(file))}" for file in files)
        return ["sh", "-c", f"{jobs} & wait"]

    return command


def _cost(command: Sequence[str], scratch: Path) -> Cost:
    cost = run(command, cwd=ROOT, env=os.environ, log=scratch / "log", timeout=1200)
    if cost.exit_code:
        raise SystemExit((scratch / "log").read_text())
    return cost


def _turn(pages: int, cost: Cost, start_up: Cost) -> dict[str, float]:
    """Return the rates of one turn; the start, which weighs little in a crawl, is told apart."""
    return {
        "pages_per_s": pages / max(cost.wall_s - start_up.wall_s, 0.001),
        "pages_per_cpu_s": pages / max(cost.cpu_s - start_up.cpu_s, 0.001),
        "pages_per_s_with_start": pages / cost.wall_s,
        "start_up_cpu_s": start_up.cpu_s,
        "peak_rss_bytes": cost.peak_rss_bytes,
    }


def _each_detector() -> list[tuple[str, float]]:
    """Return how many pages each detector does in a second of processor time."""
    detectors = installed_detectors()
    made = [page(number) for number in range(200)]
    subjects = [
        (Subject(body, url="http://www.example.org/", status=200), Charset(charset, charset, 1.0))
        for body, charset in made
    ]
    calls: dict[str, Callable[[Subject, Charset], object]] = {}
    for each in (*detectors.types, Signatures()):
        calls[f"type: {each.name} {each.version}"] = partial(_type, each)
    for statistic in (detectors.charset, CharsetDetector()):
        if statistic is not None:
            calls[f"charset: {statistic.version}"] = partial(_charset, statistic)
    if (cld2 := detectors.languages) is not None:
        calls[f"languages: {cld2.version}"] = partial(cld2.languages, is_markup=True)
    if (model := detectors.soft_404) is not None:
        calls[f"soft 404: {model.version}"] = model.probability
    return [(name, round(_rate(call, subjects))) for name, call in calls.items()]


def _type(detector: TypeDetector, subject: Subject, _: Charset) -> object:
    return detector.identify(subject.content, is_whole=True)


def _charset(detector: CharsetDetector, subject: Subject, _: Charset) -> object:
    return detector.charset(subject)


def _rate(
    call: Callable[[Subject, Charset], object], subjects: Sequence[tuple[Subject, Charset]]
) -> float:
    for subject, charset in subjects:
        call(subject, charset)  # what is loaded or compiled at the first is not the page's
    done, began = 0, time.process_time()
    while time.process_time() - began < SECONDS:
        for subject, charset in subjects:
            call(subject, charset)
        done += len(subjects)
    return done / (time.process_time() - began)


if __name__ == "__main__":
    main()
