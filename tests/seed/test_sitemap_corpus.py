"""The sitemaps, feeds and hostile documents of the conformance data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amicrawl.errors import InputError
from amicrawl.seed import open_seed
from amicrawl.seed.seed import NotASeedError
from amicrawl.seed.sitemap import entries_of

CORPUS = Path(__file__).parents[1] / "data" / "corpora" / "sitemap"
EXPECTATIONS = CORPUS / "expectations.jsonl"
ROWS: list[dict[str, Any]] = (
    [json.loads(line) for line in EXPECTATIONS.read_text().splitlines()] if EXPECTATIONS.exists() else []
)
SITEMAPS = [row for row in ROWS if row["kind"] in ("urlset", "text", "rss", "atom")]
OTHERS = [row for row in ROWS if row["kind"] in ("hostile-xml", "dtd", "external-ref", "plain")]


def name_of(row: dict[str, Any]) -> str:
    return str(row["file"])


@pytest.mark.parametrize("row", SITEMAPS, ids=name_of)
def test_every_sitemap_gives_the_urls_it_has(row: dict[str, Any]) -> None:
    faults: list[object] = []
    with open_seed(str(CORPUS / row["file"]), format="sitemap", on_fault=faults.append) as reader:
        urls = [seed.url for seed in reader]
    assert faults == []
    assert urls
    assert len(urls) == row.get("urls", len(urls))
    assert urls == row.get("locs", urls)


@pytest.mark.parametrize("row", OTHERS, ids=name_of)
def test_every_other_document_is_refused_and_reveals_nothing(row: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        list(open_seed(str(CORPUS / row["file"]), format="sitemap", on_fault=print))
    assert "is not a complete sitemap" in str(caught.value)
    if row["kind"] in ("hostile-xml", "dtd"):
        assert "document type declaration" in str(caught.value)


def test_the_broken_index_gives_the_sitemaps_that_stand_in_it_as_bare_text() -> None:
    (row,) = [row for row in ROWS if row["kind"] == "index"]
    entries = list(entries_of([(CORPUS / row["file"]).read_bytes()]))
    assert len(entries) == row["sitemaps"]
    assert all(entry.is_sitemap for entry in entries)
    assert entries[0].url == "https://example.com/sitemap.jss?portalCode=10260&lang=en"


def test_a_document_cannot_pull_in_the_file_that_it_points_at() -> None:
    secret = CORPUS / "crawler-commons" / "sitemaps" / "do-not-visit.txt"
    urlset = "<urlset><url><loc>&x;</loc></url></urlset>"
    for document in (
        f'<!DOCTYPE urlset [<!ENTITY x SYSTEM "{secret.as_uri()}">]>{urlset}',
        f"""<urlset xmlns:xi="http://www.w3.org/2001/XInclude"><url><loc>http://a.example/
        <xi:include href="{secret.as_uri()}" parse="text"/></loc></url></urlset>""",
    ):
        try:
            urls = [entry.url for entry in entries_of([document.encode()])]
        except NotASeedError:
            urls = []
        assert urls in ([], ["http://a.example/"])
