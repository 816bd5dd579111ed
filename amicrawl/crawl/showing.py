"""What a crawl that follows links would take of one page, for `scrapy parse`.

The rules are those of the crawl, applied to a page that is not archived. What only a frontier knows
(URLs met before, the limits of a host) is not considered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request

from amicrawl.discovery import Kind, extract

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from scrapy.http import Response

    from amicrawl.discovery import Selection


def shows_links(selection: Selection, starts: Collection[str]) -> Callable[..., Iterator[Any]]:
    """Return a callback that yields a request for what *selection* takes, and an item for what not.

    An item names the rule. A page of *starts*, or one that it redirects to, is on site as such.
    """

    def show(response: Response, **_: Any) -> Iterator[Any]:
        asked = response.meta.get("redirect_urls", [response.url])[0]
        on_site = asked in starts or selection.is_on_site(response.url, hops=1)
        for url, kind, _where in _links(response):
            hops = 0 if kind is Kind.REQUISITE else 1
            selected = selection.judge(url, kind=kind, hops=hops, parent_on_site=on_site)
            if selected.is_taken:
                yield Request(url, dont_filter=True, meta={"verbatim_url": True})
            else:
                yield {"url": url, "kept_out_by": selected.by, "rule": selected.rule}

    return show


def _links(response: Response) -> list[Any]:
    fields = [(name, value) for name, values in response.headers.items() for value in values]
    return list(
        extract(
            response.body,
            url=response.url,
            content_type=(response.headers.get("Content-Type") or b"").decode("latin-1"),
            fields=fields,
        )
    )
