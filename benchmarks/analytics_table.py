"""Merging and the table: `python -m benchmarks.analytics_table [--lines N] [--rounds N] [--files]`.

Each step is a process of its own, on one core as far as the program has a say; rounds are interleaved
and medians given. Lines are as long as those of the End of Term collections (some 550 octets with their
sidecar's fields), each with a record of the sidecar, or with `--without 4` three in four of them.

    dictionary   the peer: merge_cdxj's rule, the whole sidecar in a dictionary, as a script of 20 lines
    merge        `amicrawl merge`, matching by record id
    merge_key    the same files without identities: by key and second
    merge_aside  lines in no order: both sides set aside on disk, whatever their size
    table        `amicrawl table`, from what merge made
    table_sort   the same from lines in no order, without a sidecar's fields

With `--files` also, to be read by the clock, beside the dictionary:

    files_one    `amicrawl merge`, the same lines in four files with a sidecar each, in one process
    files_two    the same in two processes
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.archive.index.merging.merge import SIDES_IN_MEMORY, MergeJob, merge, merge_job
from amicrawl.archive.index.sidecar.findings import added_fields
from amicrawl.archive.table import make_table
from amicrawl.disk import Disk
from benchmarks.crawlers import ROOT
from benchmarks.report import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OUT = ROOT / "benchmarks" / "out"
_WARC = (
    "crawl-data/EOT-2012/segments/IA-{:03d}/warc/"
    "EOT-2012-20130225012855292-{:05d}-10476~wbgrp-crawl013.us.archive.org~8443.warc.gz"
)
_FILES = 4
_SHUFFLED = 1_000_000
"""Lines that are brought out of order at a time."""
_TLDS = ("gov", "com", "co.uk", "de", "org")


def write_inputs(work: Path, lines: int, *, without: int, dealt: bool) -> None:
    """Write an index of so many lines, with ids and without, and the sidecar as CDXJ, in byte order.

    And the index once more in no order; and, where they are to be *dealt* out, in several files. If
    *without* is not 0, one line in so many has no record in the sidecar.
    """
    names = ("index", "side", "bare", "bare-side")
    shuffled: list[bytes] = []
    with ExitStack() as stack:
        index, side, bare, bare_side = (
            stack.enter_context((work / f"{name}.cdxj").open("wb")) for name in names
        )
        for line, of_side, identity in _lines(lines, without=without):
            tie = f', "recordid": "{identity}"}}\n'
            bare.write(f"{line}}}\n".encode())
            index.write(f"{line}{tie}".encode())
            shuffled.append(f"{line}{tie}".encode())
            if of_side:
                bare_side.write(f"{of_side}}}\n".encode())
                side.write(f"{of_side}{tie}".encode())
            if len(shuffled) == _SHUFFLED:
                _append_shuffled(work, shuffled)
    _append_shuffled(work, shuffled)
    if dealt:
        _deal(work)


def _append_shuffled(work: Path, lines: list[bytes]) -> None:
    # By what is behind the key, they come in no order of keys.
    lines.sort(key=lambda line: line[-40:])
    with (work / "shuffled.cdxj").open("ab") as file:
        file.writelines(lines)
    lines.clear()


def _deal(work: Path) -> None:
    """Write the index and its sidecar in several files each, cut between the same captures."""
    (work / "files").mkdir(exist_ok=True)
    index, side = (
        (work / f"{name}.cdxj").read_text().splitlines(keepends=True) for name in ("index", "side")
    )
    borders = [index[len(index) * number // _FILES] for number in range(1, _FILES)]
    for name, each in (("cdxj", index), ("meta.cdxj", side)):
        # Cut where a key and second begin, both are cut between the same captures.
        cuts = [0, *[bisect_left(each, border[: border.index(" {")]) for border in borders], len(each)]
        for number, (first, end) in enumerate(pairwise(cuts)):
            (work / "files" / f"{number}.{name}").write_text("".join(each[first:end]))


def _numbers(count: int) -> Iterator[int]:
    """Yield the numbers of so many lines in the order of their keys."""
    # A host has 40 pages, and each five hosts are of one domain each.
    hosts = range((count + 39) // 40)
    for tld in sorted(range(len(_TLDS)), key=lambda at: _TLDS[at].split(".")[::-1]):
        for host in hosts[tld :: len(_TLDS)]:
            yield from range(40 * host, min(40 * host + 40, count))


def _lines(count: int, *, without: int) -> Iterator[tuple[str, str, str]]:
    """Yield lines of an index and of a sidecar, both still open, and the record's id, in byte order."""
    for number in _numbers(count):
        label, tld = f"site{number // 40:07d}", _TLDS[number // 40 % len(_TLDS)]
        digest = hashlib.sha256(str(number).encode()).hexdigest().upper()
        host = ",".join(reversed(f"{label}.{tld}".split(".")))
        key = f"{host})/a/{number % 40:02d}/page{digest[:6].lower()}.html"
        fields = {
            "url": f"http://www.{label}.{tld}/a/{number % 40:02d}/Page{digest[:6]}.html?id={number}",
            "mime": "text/html",
            "status": "404" if number % 10 == 0 else "200",
            "digest": digest[:32],
            "length": str(500 + number % 90_000),
            "offset": str(number * 977),
            "filename": _WARC.format(number % 7, number % 50),
        }
        found = {
            "Identified-Payload-Type": {"fido": "text/html", "python-magic": "text/html"},
            "Preservation-Identifier": "fmt/96",
            "Charset-Detected": {"encoding": "utf-8", "confidence": 0.99},
            "Languages-cld2": {
                "reliable": True,
                "text-bytes": number % 20_000,
                "languages": [{"name": "ENGLISH", "code": "en", "text-covered": 98, "score": 878.0}],
            },
            "Soft-404-Detected": number % 1000 / 1000,
        }
        time_of_day = f"{number % 86_400 // 3600:02d}{number % 60:02d}{number // 60 % 60:02d}"
        head = f"{key} 201302{number % 28 + 1:02d}{time_of_day}"
        identity = (
            f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}".lower()
        )
        has_side = not without or number % without
        side = f"{head} {json.dumps(found)[:-1]}" if has_side else ""
        yield f"{head} {json.dumps(fields)[:-1]}", side, identity


def by_dictionary(work: Path) -> int:
    """Merge as merge_cdxj does."""
    found: dict[str, dict[str, Any]] = {}
    with (work / "bare-side.cdxj").open() as side:
        for line in side:
            key, timestamp, text = line.split(" ", 2)
            found[f"{key} {timestamp}"] = json.loads(text)
    count = 0
    with (work / "bare.cdxj").open() as index, (work / "by-dictionary.cdxj").open("w") as out:
        for line in index:
            count += 1
            key, timestamp, text = line.split(" ", 2)
            belonging = found.get(f"{key} {timestamp}")
            if belonging is None:
                out.write(line)
                continue
            fields = json.loads(text)
            fields.update(added_fields(belonging))
            out.write(f"{key} {timestamp} {json.dumps(fields)}\n")
    return count


def _merged(work: Path, index: str, side: str, held: int) -> int:
    out = work / f"merged-{held}"
    out.mkdir(exist_ok=True)
    return merge_job(MergeJob((work / index,), (work / side,), out, sides_in_memory=held)).counts.lines


def _merged_files(work: Path, processes: int) -> int:
    files, out = work / "files", work / f"merged-files-{processes}"
    indexes = [files / f"{number}.cdxj" for number in range(_FILES)]
    sides = [files / f"{number}.meta.cdxj" for number in range(_FILES)]
    return merge(indexes, sides, out, processes=processes, worth_a_process=1).counts.lines


def _table(source: Path) -> int:
    with tempfile.TemporaryDirectory(dir=source.parent) as out:
        report = make_table([source], Path(out) / "table", disk=Disk())
        assert report.rows == report.lines
        return report.lines


STEPS: dict[str, Callable[[Path], int]] = {
    "dictionary": by_dictionary,
    "merge": lambda work: _merged(work, "index.cdxj", "side.cdxj", SIDES_IN_MEMORY),
    "merge_key": lambda work: _merged(work, "bare.cdxj", "bare-side.cdxj", SIDES_IN_MEMORY),
    "merge_aside": lambda work: _merged(work, "shuffled.cdxj", "side.cdxj", 0),
    "table": lambda work: _table(work / f"merged-{SIDES_IN_MEMORY}" / "index.cdxj"),
    "table_sort": lambda work: _table(work / "shuffled.cdxj"),
}
_OUTPUTS = {
    "dictionary": "by-dictionary.cdxj",
    "merge": f"merged-{SIDES_IN_MEMORY}/index.cdxj",
    "merge_key": f"merged-{SIDES_IN_MEMORY}/bare.cdxj",
    "merge_aside": "merged-0/*.cdxj",
}
FILES_STEPS: dict[str, Callable[[Path], int]] = {
    "files_one": lambda work: _merged_files(work, 1),
    "files_two": lambda work: _merged_files(work, 2),
}


def step_figures(step: str, work: Path) -> dict[str, float]:
    """Run *step* here and return its figures."""
    for made in work.glob(_OUTPUTS[step]) if step in _OUTPUTS else ():
        # To let go of what an earlier round wrote costs the system a tenth of writing it.
        made.unlink()
    before, user_before, system_before = time.perf_counter(), *_processor_time()
    lines = (STEPS | FILES_STEPS)[step](work)
    seconds, (user, system) = time.perf_counter() - before, _processor_time()
    return {
        "lines_per_second": lines / seconds,
        "lines_per_cpu_second": lines / (user + system - user_before - system_before),
        "user_seconds": user - user_before,
        "system_seconds": system - system_before,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _processor_time() -> tuple[float, float]:
    """Return what this process and those it has started took, its own and the system's for it."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + others.ru_utime, own.ru_stime + others.ru_stime


def measure(
    lines: int, rounds: int, *, work: Path, steps: Sequence[str], without: int = 0
) -> dict[str, Any]:
    """Run all *steps* so many times; return the report."""
    # In a process of its own: what a process takes is counted from its parent's size on.
    dealt = not FILES_STEPS.keys().isdisjoint(steps)
    _run_step("inputs", work, "--lines", str(lines), "--without", str(without), *["--files"] * dealt)
    turns: dict[str, list[dict[str, float]]] = {step: [] for step in steps}
    for _ in range(rounds):
        for step in steps:
            turns[step].append(json.loads(_run_step(step, work)))
            print(f"{step}: {turns[step][-1]}", file=sys.stderr, flush=True)
    figures = {
        step: {name: statistics.median(turn[name] for turn in each) for name in each[0]}
        for step, each in turns.items()
    }
    return {
        "machine": machine(),
        "lines": lines,
        "one_without_record_in": without,
        "octets_per_line": (work / f"merged-{SIDES_IN_MEMORY}" / "index.cdxj").stat().st_size / lines,
        "load_before": os.getloadavg()[0],
        "rounds": rounds,
        "figures": figures,
        "turns": turns,
    }


def _run_step(step: str, work: Path, *options: str) -> str:
    command = [sys.executable, "-m", "benchmarks.analytics_table", "--step", step, "--work", str(work)]
    done = subprocess.run([*command, *options], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def main(arguments: list[str]) -> int:
    """Measure as *arguments* say."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.analytics_table", description="Merging and the table."
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--without", type=int, default=0, help="one line in so many has no record")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--json", type=Path, default=OUT / "analytics_table.json", help="where the report goes"
    )
    parser.add_argument("--files", action="store_true", help="also merge several files, in processes")
    parser.add_argument("--step", choices=["inputs", *STEPS, *FILES_STEPS], help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step == "inputs":
        write_inputs(options.work, options.lines, without=options.without, dealt=options.files)
        return 0
    if options.step:
        print(json.dumps(step_figures(options.step, options.work)), flush=True)
        return 0
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as name:
        steps = [*STEPS, *(FILES_STEPS if options.files else ())]
        report = measure(
            options.lines, options.rounds, work=Path(name), steps=steps, without=options.without
        )
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{report['lines']:,} lines of {report['octets_per_line']:.0f} octets; medians of rounds.")
    for step, figures in report["figures"].items():
        shown = ", ".join(
            f"{name} {value:,.2f}" if name.endswith("_seconds") else f"{name} {value:,.0f}"
            for name, value in figures.items()
        )
        print(f"    {step:<12} {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
