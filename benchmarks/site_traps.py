"""Traps of the made-up site: parts of it without end, each of a kind that real sites have.

    calendar   every month links to the ones before and after it
    session    ten pages, but every link to one carries another session
    facets     a listing with filters, of each of which one value can be chosen, in every order
    choices    a listing with filters, of each of which any number of values can be chosen
    deepening  relative links, so that each page is one directory further down
    same       one text under any name; a header field names the next ones
    lost       whatever is requested, the response is 200 and "not found", with more such links
    escapes    each page links to its own name, escaped once more
    chain      each page adds a parameter to the query

Pages are made as they are requested, from their URL alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Sequence

TRAPS = {
    "/calendar/": "calendar",
    "/item/": "session",
    "/shop": "facets",
    "/stock": "choices",
    "/deep/": "deepening",
    "/same/": "same",
    "/lost/": "lost",
    "/esc/": "escapes",
    "/chain": "chain",
}
"""Names of the traps, by how their URLs begin."""
ITEMS = 10

_FACETS = {
    "color": ("red", "green", "blue", "black", "white"),
    "size": ("s", "m", "l", "xl"),
    "sort": ("price", "name", "new"),
    "brand": ("akaro", "senvar", "palgro", "isteel"),
}
_VALUES = [(name, value) for name, values in _FACETS.items() for value in values]


def _entrance(*urls: str) -> bytes:
    return "".join(f'<p><a href="{url}">{url}</a></p>\n' for url in urls).encode()


ENTRANCES = (
    _entrance("/calendar/2026/01/"),
    _entrance(*(f"/item/{item}?sid={item:032x}" for item in range(ITEMS))),
    _entrance("/shop?color=red", "/shop?sort=price&amp;size=m"),
    _entrance("/stock?color=red", "/stock?brand=akaro&amp;color=blue"),
    _entrance("/deep/"),
    _entrance("/same/0"),
    _entrance("/lost/old-page.html"),
    _entrance("/esc/a%41b.html"),
    _entrance("/chain?p0=0"),
)
"""Links into each of them."""


def trapped(target: bytes, *, nav: bytes, text: Sequence[bytes]) -> tuple[bytes, str] | None:
    """Return the page at *target* and its further header fields; None where that is in no trap."""
    path, _, query = target.decode("latin-1").partition("?")
    name = next((name for prefix, name in TRAPS.items() if path.startswith(prefix)), None)
    if name is None:
        return None
    if name == "same":
        number = _number(path.rpartition("/")[2])
        following = f"Link: </same/{number * 2 + 1}>; rel=next, </same/{number * 2 + 2}>; rel=next\r\n"
        return _page(b"The same", b"", nav, text[7]), following
    if name == "lost":
        links = _anchors("missing/one.html", "missing/two.html", "gone/three.html")
        return _page(b"Not found", links, nav, b"<p>Sorry, this page was not found.</p>"), ""
    links = _anchors(*_LINKS[name](path, query))
    # A session does not change what an item is; everything else is a page of its own.
    subject = path if name == "session" else f"{path}?{query}"
    part = text[crc32(subject.encode("latin-1")) % len(text)]
    return _page(subject.encode("latin-1"), links, nav, part), ""


def _page(title: bytes, links: bytes, nav: bytes, text: bytes) -> bytes:
    title = title.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b'"', b"&quot;")
    return b"<!DOCTYPE html><html><title>%b</title><nav><ul>%b</ul></nav><h1>%b</h1>\n%b%b</html>" % (
        title,
        nav,
        title,
        links,
        text,
    )


def _anchors(*urls: str) -> bytes:
    written = (url.replace("&", "&amp;").replace('"', "%22") for url in urls)
    return "".join(f'<a href="{url}">more</a>\n' for url in written).encode("latin-1")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4000 else 0


def _calendar(path: str, _: str) -> list[str]:
    parts = path.strip("/").split("/")
    year, month = (_number(part) for part in [*parts, "2026", "1"][1:3])
    months = year * 12 + month - 1
    urls = [f"/calendar/{at // 12}/{at % 12 + 1:02d}/" for at in (months - 1, months + 1) if at > 0]
    return [*urls, *(f"/calendar/{year}/{month:02d}/{day:02d}/" for day in range(1, 29, 9))]


def _session(path: str, query: str) -> list[str]:
    state = int(query[-32:], 16) if _is_hex(query[-32:]) else 1
    urls = []
    for item in range(ITEMS):
        state = (state * 6364136223846793005 + 1442695040888963407 + item) & (2**128 - 1)
        urls.append(f"/item/{item}?sid={state:032x}")
    return urls if path.startswith("/item/") else []


def _is_hex(text: str) -> bool:
    return bool(text) and all(character in "0123456789abcdef" for character in text)


def _facets(_: str, query: str) -> list[str]:
    chosen = [part for part in query.split("&") if part]
    kept = {part.partition("=")[0]: part for part in chosen}
    urls = []
    for name, value in _VALUES:
        others = [part for part in chosen if part != kept.get(name)]
        urls.append(f"/shop?{'&'.join([*others, f'{name}={value}'])}")
    return urls


def _choices(_: str, query: str) -> list[str]:
    chosen = [part for part in query.split("&") if part]
    return [
        f"/stock?{'&'.join([*chosen, f'{name}={value}'])}"
        for name, value in _VALUES
        if f"{name}={value}" not in chosen
    ]


def _deepening(_: str, __: str) -> list[str]:
    return ["a/", "b/"]


def _escapes(path: str, _: str) -> list[str]:
    return [path.replace("%", "%25"), path.replace("/esc/", "/esc/%2e")]


def _chain(_: str, query: str) -> list[str]:
    count = query.count("&") + 1
    return [f"/chain?{query}&p{count}={value}" for value in (0, 1)]


_LINKS = {
    "calendar": _calendar,
    "session": _session,
    "facets": _facets,
    "choices": _choices,
    "deepening": _deepening,
    "escapes": _escapes,
    "chain": _chain,
}
