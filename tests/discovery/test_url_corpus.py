"""The public tests of URLs (web-platform-tests): a link leads where a browser would go."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from urls.vectors import CORPORA

from amicrawl.config import Identity
from amicrawl.discovery import extract
from amicrawl.urls import Refused, fetchable, url_key

if TYPE_CHECKING:
    from amicrawl.urls import UrlKey

CASES = CORPORA / "url" / "urltestdata.json"

ITSELF = "it leads to the page itself, which is no link"
DOTS = "an escaped period is a character like others here: some servers tell it from a dot segment"
IPV4 = "a host is requested as it is written; what address that is, is judged when it is dialled"
PORT = "zeros in front of a port are kept"
DIFFERENT = {
    "": ITSELF,
    "  \t": ITSELF,
    "#": ITSELF,
    "#/": ITSELF,
    "#\\": ITSELF,
    "#;?": ITSELF,
    "#β": ITSELF,
    "http://example.com/foo/%2e": DOTS,
    "http://example.com/foo/%2e./%2e%2e/.%2e/%2e.bar": DOTS,
    "http://www/foo/%2E/html": DOTS,
    "https://example.com/aaa/bbb/%2e%2e?query": DOTS,
    "http://192.0x00A80001": IPV4,
    "http://%30%78%63%30%2e%30%32%35%30.01": IPV4,
    "http://%30%78%63%30%2e%30%32%35%30.01%2e": IPV4,
    "http://192.168.0.257": IPV4,
    "http://０Ｘｃ０．０２５０．０１": IPV4,  # letters of full width are the point
    "http://f:00000000000000/c": PORT,
    "http://f:00000000000000000000080/c": PORT,
    "http://f:21/ b ? d # e ": "the blank at the end of a query is left away",
}
"""The links that lead elsewhere, and why."""


def key_of(url: str | None) -> UrlKey | None:
    """Return the key of the row that *url* has; None for what is not fetched."""
    if url is None or isinstance(fetchable(url), Refused):
        return None
    key = url_key(url, Identity.CANONICAL)
    assert not isinstance(key, Refused)
    return key


def link_on(page: str, reference: str) -> str | None:
    text = f'<a href="{html.escape(reference)}">'.encode("utf-8", "surrogatepass")
    links = extract(text, url=page, content_type="text/html; charset=utf-8")
    return links[0].url if links else None


def expected(case: dict[str, Any]) -> str | None:
    url = None if case.get("failure") else str(case["href"]).partition("#")[0]
    return url if url is not None and url.startswith(("http:", "https:")) else None


def cases() -> list[tuple[dict[str, Any], str]]:
    """Return each case with the page that it stands on; where it has none, one of another scheme."""
    found = []
    for case in json.loads(CASES.read_text(encoding="utf-8")):
        if not isinstance(case, dict):
            continue
        base = case.get("base")
        if base in {None, "about:blank"}:
            base = (
                "https://page.invalid/" if case["input"].startswith("http:") else "http://page.invalid/"
            )
        if base.startswith(("http:", "https:")):
            found.append((case, base))
    return found


def test_links_lead_where_a_browser_would_go() -> None:
    elsewhere = {
        case["input"]
        for case, base in cases()
        if key_of(link_on(base, case["input"])) != key_of(expected(case))
    }
    assert len(cases()) > 350
    assert elsewhere == DIFFERENT.keys()
