"""The model beside the rule that needs none: `python -m benchmarks.soft404.rule TREES`.

The rule (Bar-Yossef, Broder, Kumar and Tomkins, *Sic transit gloria telae*, WWW 2004): request a URL
that cannot exist in the directory of a page. If the response is an error, the server says what is
missing, and the page is one. If both end at the same redirect, or their texts are almost the same, the
page is an error page; not so the front page of a host.

The sites are those of Flask, Django and Otter Wiki (`peers/soft404_sites`); trees of manuals, served in
three ways: by a server that says 404, by one that sends an error page with status 200, and by one that
sends its front page for whatever it does not have; and an application whose every page is the same shell
before its scripts run. Standard output has precision and recall of model and rule for each.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.index.sidecar.soft404 import Soft404Model
from benchmarks.peer import peer_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PEER = Path(__file__).parent.parent / "peers" / "soft404_sites" / "sites.py"
PROBE = "kqzvxwjhtbnmrfdgyplc"
"""A name that no site has."""
_SHINGLE = 4
SAME = 0.9
"""Resemblance from which on two texts are almost the same."""
_MOST = 500


class Response(NamedTuple):
    """A response of a site."""

    site: str
    path: str
    truth: str
    """`page`, `missing`, or `probe`."""
    status: int
    location: str
    body: str

    @property
    def directory(self) -> str:
        """The path up to the last segment."""
        return self.path.rstrip("/").rpartition("/")[0] + "/"


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style"} and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words += data.lower().split()


def text_of(response: Response) -> list[str]:
    """Return the words of a page without its own address, which error pages repeat."""
    parser = _Text()
    parser.feed(response.body)
    parser.close()
    last = response.path.rstrip("/").rpartition("/")[2].lower()
    return [word for word in parser.words if last not in word]


def shingles(words: list[str]) -> set[tuple[str, ...]]:
    """Return the runs of four words."""
    return {tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1))}


def is_soft_404(page: Response, probe: Response) -> bool:
    """Return whether the rule says that *page* is an error page, by the *probe* of its directory."""
    if page.path == "/" or probe.status >= 400:
        return False
    if page.location or probe.location:
        return page.location == probe.location
    ours, theirs = shingles(text_of(page)), shingles(text_of(probe))
    return len(ours & theirs) / len(ours | theirs) >= SAME


def software(texts: list[dict[str, Any]]) -> Iterator[Response]:
    """Yield the responses of the sites that software makes of *texts*."""
    command = [peer_command("soft404_sites", "python"), str(PEER)]
    given = json.dumps({"texts": texts, "probe": PROBE})
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield Response(**json.loads(line))


def manuals(trees: Path, package: str) -> dict[str, str]:
    """Return a sample of the pages of *package* by path: the same every time."""
    paths = [path for path in (trees / package).rglob("*.html") if path.is_file()]
    drawn = sorted(paths, key=lambda path: hashlib.sha256(path.name.encode()).digest())[:_MOST]
    return {f"/{path.relative_to(trees)}": path.read_text("utf-8", "replace") for path in drawn}


_ERROR_PAGE = (
    "<!doctype html><html><head><title>Documentation</title></head><body><h1>This chapter does not "
    "exist</h1><p>Go back to the <a href='/'>contents</a>, or use the search.</p></body></html>"
)


def served(
    name: str, pages: dict[str, str], *, missing: Callable[[str], str] | None
) -> Iterator[Response]:
    """Yield the responses of a server of *pages* that sends *missing* for others; a 404 if None."""
    folders = {path.rpartition("/")[0] + "/" for path in pages}
    gone = [f"{path.removesuffix('.html')}-old.html" for path in list(pages)[::8]]
    for path, body in pages.items():
        yield Response(name, path, "page", 200, "", body)
    for truth, paths in (("missing", gone), ("probe", [f"{each}{PROBE}" for each in folders])):
        for path in paths:
            body = _ERROR_PAGE if missing is None else missing(path)
            yield Response(name, path, truth, 404 if missing is None else 200, "", body)


def worth(marked: Iterable[tuple[bool, bool]]) -> dict[str, float | int | None]:
    """Return precision and recall by pairs: whether it is an error page, whether it is marked."""
    pairs = list(marked)
    right = sum(is_error and said for is_error, said in pairs)
    said = sum(said for _, said in pairs)
    errors = sum(is_error for is_error, _ in pairs)
    return {
        "precision": round(right / said, 3) if said else None,
        "recall": round(right / errors, 3) if errors else None,
        "false alarms": said - right,
    }


def judged(responses: Iterable[Response]) -> dict[str, object]:
    """Return what model and rule are worth on the responses of one site."""
    model = Soft404Model.shipped()
    listed = list(responses)
    probes = {each.directory: each for each in listed if each.truth == "probe"}
    # What is sent as an error needs no detector.
    requested = [each for each in listed if each.truth != "probe" and each.status < 400]
    truths = [each.truth == "missing" for each in requested]
    by_model = [
        each.status == 200 and model.of_page(each.body, f"http://site.example{each.path}") >= 0.5
        for each in requested
    ]
    by_rule = [is_soft_404(each, probes[each.directory]) for each in requested]
    return {
        "pages": truths.count(False),
        "error pages": truths.count(True),
        "probes": len(probes),
        "model": worth(zip(truths, by_model, strict=True)),
        "rule": worth(zip(truths, by_rule, strict=True)),
    }


def texts_of(pages: dict[str, str]) -> list[dict[str, Any]]:
    """Return titles and paragraphs of *pages*, for other sites to be made of."""
    found: list[dict[str, Any]] = []
    for body in pages.values():
        title = body.partition("<title>")[2].partition("</title>")[0].strip()
        parts = [" ".join(_words(each)) for each in body.split("<p")[1:9]]
        paragraphs = [each for each in parts if len(each) > 40]
        if title and paragraphs:
            found.append({"title": title[:80], "paragraphs": paragraphs})
    return found[:200]


def _words(markup: str) -> list[str]:
    parser = _Text()
    parser.feed(f"<p{markup.partition('</p')[0]}")
    parser.close()
    return parser.words


def main() -> None:
    """Print the report as JSON."""
    trees = Path(sys.argv[1]).absolute()
    by_site: defaultdict[str, list[Response]] = defaultdict(list)
    for response in software(texts_of(manuals(trees, "postgresql-doc-15"))):
        by_site[response.site].append(response)
    for package in ("rust-doc", "python3.11-doc", "postgresql-doc-15", "debian-handbook"):
        pages = manuals(trees, package)
        front = next(iter(pages.values()))
        for way, missing in (
            ("404", None),
            ("error page with 200", lambda _: _ERROR_PAGE),
            ("front page for all", lambda _, front=front: front),
        ):
            by_site[f"{package}, {way}"] += served(package, pages, missing=missing)
    shell = "<!doctype html><title>App</title><div id=app></div><script src=/app.js></script>"
    shells = dict.fromkeys((f"/app/{number}" for number in range(100)), shell)
    by_site["pages made by scripts"] += served("scripts", shells, missing=lambda _: shell)
    report = {site: judged(responses) for site, responses in by_site.items()}
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
