"""Media types beside `file` and beside browsers: `python -m benchmarks.media_types TREES...`.

Of each file of the trees (`make collection-demo` leaves them in `build/manuals/trees`), served as
`examples/manuals/site.py` serves it, three types: `mime-detected` of amicrawl; what `file --mime-type`
says of the decoded payload; and the computed type of WHATWG's MIME Sniffing Standard, here written down
from its sections 5 to 7. Names of one type count as one. Standard output has how many agree, and each
pair that does not, with an example. `--undeclared` leaves the `Content-Type` out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.archive.index.sidecar.detectors import Characteriser, installed_detectors
from amicrawl.archive.index.sidecar.findings import TYPES, added_fields
from amicrawl.archive.index.sidecar.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EXAMPLES = Path(__file__).parent.parent / "examples"
_NAMES = {
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "application/x-gzip": "application/gzip",
    "application/xml": "text/xml",
    "image/x-icon": "image/vnd.microsoft.icon",
    "application/font-woff": "font/woff",
    "application/vnd.ms-opentype": "font/otf",
    "application/font-sfnt": "font/sfnt",
    "text/x-markdown": "text/markdown",
    "text/x-python": "text/x-script.python",
    "audio/x-wav": "audio/wave",
}
"""Other names of a type, by IANA's registrations and WHATWG's lists."""


class Sniffed:
    """The computed media type of a resource (MIME Sniffing Standard, section 7)."""

    header_bytes = 1445

    def __init__(self, content: bytes, content_type: str) -> None:
        self._header = content[: self.header_bytes]
        self._content_type = content_type

    def type(self) -> str:
        """Return the computed type; that of navigations, where nothing expects a script or a style."""
        supplied = self._content_type.partition(";")[0].strip().lower()
        if supplied in {"", "unknown/unknown", "application/unknown", "*/*"}:
            return self._unknown()
        if supplied == "text/html":
            return self._feed_or_html()
        if self._content_type in _APACHE_BUG:
            return self._text_or_binary()
        found = ""
        if supplied.startswith("image/") and not supplied.endswith("+xml"):
            found = self._matched(_IMAGES)
        elif supplied.startswith(("audio/", "video/")) or supplied == "application/ogg":
            found = self._audio_or_video()
        return found or supplied

    def _unknown(self) -> str:
        head = self._header
        if _SCRIPTABLE.match(head):
            return "text/html"
        if re.match(rb"[\t\n\x0c\r ]*<\?xml", head):
            return "text/xml"
        if head.startswith(b"%PDF-"):
            return "application/pdf"
        if head.startswith(b"%!PS-Adobe-"):
            return "application/postscript"
        if head.startswith((b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")) and len(head) >= 4:
            return "text/plain"
        return (
            self._matched(_IMAGES)
            or self._audio_or_video()
            or self._matched(_ARCHIVES)
            or ("application/octet-stream" if _BINARY.search(head) else "text/plain")
        )

    def _text_or_binary(self) -> str:
        if self._header.startswith((b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")):
            return "text/plain"
        return "application/octet-stream" if _BINARY.search(self._header) else "text/plain"

    def _feed_or_html(self) -> str:
        rest = self._header.removeprefix(b"\xef\xbb\xbf")
        found = _BEFORE_ROOT.sub(b"", rest, count=1)
        if found.startswith(b"<rss"):
            return "application/rss+xml"
        if found.startswith(b"<feed"):
            return "application/atom+xml"
        if found.startswith(b"<rdf:RDF") and all(name in rest for name in _RSS_1):
            return "application/rss+xml"
        return "text/html"

    def _matched(self, patterns: Sequence[tuple[str, bytes]]) -> str:
        found = (kind for kind, each in patterns if re.match(each, self._header, re.DOTALL))
        return next(found, "")

    def _audio_or_video(self) -> str:
        if matched := self._matched(_MEDIA):
            return matched
        head = self._header
        size = int.from_bytes(head[:4], "big")
        if head[4:8] == b"ftyp" and 12 <= size <= len(head) and not size % 4:
            brands = [head[8:11], *(head[at : at + 3] for at in range(16, size, 4))]
            if b"mp4" in brands:
                return "video/mp4"
        if head.startswith(b"\x1aE\xdf\xa3") and re.search(rb"B\x82.webm", head[4:38], re.DOTALL):
            return "video/webm"
        return ""


_APACHE_BUG = {
    "text/plain",
    *(f"text/plain; charset={name}" for name in ("ISO-8859-1", "iso-8859-1", "UTF-8")),
}
_SCRIPTABLE = re.compile(
    rb"[\t\n\x0c\r ]*(?i:<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b"
    rb"|body|br|p)[ >]|<!--)"
)
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_BEFORE_ROOT = re.compile(rb"(?s)(?:[\t\n\x0c\r ]+|<!--.*?-->|<!.*?>|<\?.*?\?>)*")
_RSS_1 = (b"http://purl.org/rss/1.0/", b"http://www.w3.org/1999/02/22-rdf-syntax-ns#")
_IMAGES = (
    ("image/vnd.microsoft.icon", rb"\x00\x00[\x01\x02]\x00"),
    ("image/bmp", rb"BM"),
    ("image/gif", rb"GIF8[79]a"),
    ("image/webp", rb"RIFF....WEBPVP"),
    ("image/png", rb"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", rb"\xff\xd8\xff"),
)
_MEDIA = (
    ("audio/aiff", rb"FORM....AIFF"),
    ("audio/mpeg", rb"ID3"),
    ("application/ogg", rb"OggS\x00"),
    ("audio/midi", rb"MThd\x00\x00\x00\x06"),
    ("video/avi", rb"RIFF....AVI "),
    ("audio/wave", rb"RIFF....WAVE"),
)
_ARCHIVES = (
    ("application/gzip", rb"\x1f\x8b\x08"),
    ("application/zip", rb"PK\x03\x04"),
    ("application/x-rar-compressed", rb"Rar \x1a\x07\x00"),
)


def payloads(trees: Path, *, most: int) -> Iterator[tuple[Path, bytes, str]]:
    """Yield at most *most* files of each tree: path, decoded payload, `Content-Type`."""
    sys.path.insert(0, str(_EXAMPLES))
    from manuals.site import chosen_files, declared  # noqa: PLC0415

    for path in chosen_files(trees, most=most).values():
        fields = declared(path)
        content = path.read_bytes()
        if fields.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        if content:
            yield path, content, fields.get("Content-Type", "")


def detected(characteriser: Characteriser, path: Path, content: bytes, content_type: str) -> str:
    """Return `mime-detected` of a payload."""
    url = f"http://manuals.example{path}"
    subject = Subject(content, url=url, status=200, content_type=content_type)
    return str(added_fields({TYPES: characteriser.findings(subject).types}).get("mime-detected", ""))


def by_file(contents: Sequence[bytes]) -> list[str]:
    """Return what `file --mime-type` says of each payload."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, content in enumerate(contents):
            (Path(scratch) / f"{number}").write_bytes(content)
        names = "".join(f"{number}\n" for number in range(len(contents)))
        command = ["file", "--brief", "--mime-type", "--files-from", "-"]
        done = subprocess.run(
            command, input=names, cwd=scratch, capture_output=True, text=True, check=True
        )
    return done.stdout.splitlines()


_BATCH = 2_000


def compared(trees: Path, *, most: int, undeclared: bool) -> dict[str, Any]:
    """Return the report on one directory of trees."""
    characteriser = Characteriser(installed_detectors(["charset", "languages", "soft-404"]))
    agree: Counter[str] = Counter()
    differ: dict[str, Counter[tuple[str, str, str]]] = {"file": Counter(), "browsers": Counter()}
    examples: dict[tuple[str, str, str, str], str] = {}
    files, count = payloads(trees, most=most), 0
    while batch := list(islice(files, _BATCH)):
        count += len(batch)
        said = by_file([content for _, content, _ in batch])
        for (path, content, declared), of_file in zip(batch, said, strict=True):
            stated = "" if undeclared else declared
            ours = detected(characteriser, path, content, stated)
            others = {"file": of_file, "browsers": Sniffed(content, stated).type()}
            for name, other in others.items():
                if _NAMES.get(other, other) == _NAMES.get(ours, ours):
                    agree[name] += 1
                    continue
                pair = (other, ours, stated)
                differ[name][pair] += 1
                examples.setdefault((name, *pair), str(path.relative_to(trees)))
    return {
        "payloads": count,
        "agree": dict(agree),
        "differ": {
            name: [
                {"they": pair[0], "amicrawl": pair[1], "declared": pair[2], "payloads": count}
                | {"example": examples[name, *pair]}
                for pair, count in counted.most_common()
            ]
            for name, counted in differ.items()
        },
    }


def main() -> None:
    """Print the report as JSON."""
    parser = argparse.ArgumentParser(description="Media types beside file and browsers.")
    parser.add_argument("trees", type=Path, nargs="+", help="directory of unpacked packages")
    parser.add_argument("--most", type=int, default=11_500, help="most files of one package")
    parser.add_argument("--undeclared", action="store_true", help="without Content-Type")
    requested = parser.parse_args()
    found = {
        str(each): compared(each.absolute(), most=requested.most, undeclared=requested.undeclared)
        for each in requested.trees
    }
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
