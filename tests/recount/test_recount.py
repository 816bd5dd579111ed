"""What commands derive from a crawl has the figures that an independent count of its WARC files has.

`make test-recount` does so with the manuals of Debian packages, which are downloaded; here the site is
small, with a file of each kind.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from manuals.site import PACKAGES, ManualsSite, chosen_files, unpack
from recount.independent_count import recount, shown
from warm_processes import SCRIPT, run

PROJECT = Path(__file__).parents[2]
CACHE = os.environ.get("AMICRAWL_RECOUNT_CACHE", "")
MOST = int(os.environ.get("AMICRAWL_RECOUNT_MOST", "400"))

_PAGES = {
    "ja.html": '<meta charset="utf-8"><title>手引</title><p>参照 <a href="ru.html">次</a>',
    "ru.html": "<title>Руководство</title><p>Текст <a href=ja.html>назад</a> <a name=x>место</a>",
    "empty.html": "<title></title><script>only()</script>",
    "same.html": "<title>Руководство</title><p>Текст <a href=ja.html>назад</a> <a name=x>место</a>",
    "Case.html": "<p>one",
    "case.html": "<p>other",
    "app.js": "function f() { return 1 }",
    "bare": "a file without an ending",
    "blank.txt": " \n",
}


def site_files(scratch: Path) -> dict[str, Path]:
    """Return the files that are served, by path: of the packages, or a small site of all their kinds."""
    if CACHE:
        return chosen_files(unpack(PACKAGES, Path(CACHE).absolute()), most=MOST)
    small = scratch / "site" / "man"
    small.mkdir(parents=True)
    for name, text in _PAGES.items():
        (small / name).write_text(text, encoding="utf-8")
    (small / "page.3.gz").write_bytes(gzip.compress(b".TH PAGE 3\n.SH NAME\npage\n"))
    # One package, as far as the site is concerned.
    return chosen_files(scratch / "site", most=MOST)


def amicrawl(*arguments: str | Path) -> None:
    done = run([SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_every_figure_of_what_is_derived_is_that_of_an_independent_count(tmp_path: Path) -> None:
    crawl, collection = tmp_path / "crawl", tmp_path / "collection"
    files = site_files(tmp_path)
    settings = ("--delay", "0", "-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "-s", "AMICRAWL_PER_HOST=8")
    with ManualsSite(files) as site:
        seeds = tmp_path / "seeds.txt"
        missing = f"{site.url}/missing.html\n"
        seeds.write_text("".join(f"{site.url}{name}\n" for name in files) + missing)
        amicrawl("crawl", seeds, "-o", crawl, "-q", *settings)
        # All again: what has not changed becomes revisit records in the same directory.
        amicrawl("recrawl", crawl, "--all", "-q", *settings)
    amicrawl("collection", crawl, "-o", collection, "-q")
    amicrawl("index", crawl, "-o", tmp_path / "cdx", "--format", "cdx11", "-q")
    package = tmp_path / "manuals.wacz"
    amicrawl("wacz", crawl, "-o", package, "--pages", crawl / "captures.parquet")
    figures = recount(crawl, collection, tmp_path / "cdx", package)
    different = {
        name: (shown(counted), shown(product))
        for name, (counted, product) in figures.items()
        if counted != product
    }
    assert not different
    captures, revisits = figures["CDXJ lines"][0], figures["summary: revisits"][0]
    assert len(captures) >= 2 * len(files)
    assert revisits >= len(files)
    assert figures["WET records"][0]
