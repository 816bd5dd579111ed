"""What a crawl could not keep, as far as it can know: counted, and said at its end.

    scripted     pages whose content is made by scripts, which are not run
    requisites   what pages need to be shown and the archive does not have, and how many pages need it
    shape        one shape of URL that most fetches were of: a calendar, a search, a trap

A crawl that follows no links counts the first of these alone, of a sample of its pages.
`crawl.json` has them under `unkept`; `unkept_sentences` puts them into words. Memory is bounded.
"""

from __future__ import annotations

import re
from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING, Any

from amicrawl.record.captures import description_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from amicrawl.record.captures import CaptureItem

EXAMPLES = 3
"""Pages of each kind that are named."""
LEAST_FETCHES = 200
"""Fetches from which on one shape of URL is worth a word."""
_MOST_REMEMBERED = 100_000
"""Pages, and requisites, that are distinguished; those beyond are not counted."""
_MOST_SHAPES = 4096
_ALL_UNTIL, _ONE_OF = 64, 64
"""Pages of a list that are all looked at, and of how many behind them one is: a look takes 80 us."""
_MOST_LOOKED_AT = 1 << 18
"""Bytes of a page of a list that is looked at; a larger one has text or data of its own."""
_LONGEST_SHAPE = 300
"""Characters of a URL that its shape is made of."""
_CUT = "..."
_OK = 200
_HTML = ("text/html", "application/xhtml")
_NUMBER = re.compile(r"[0-9]+")
_VALUE = re.compile(r"(?<==)[^&;]+")
_STAR = "%2A"
"""A star of the URL itself, which stands for nothing else."""


def shape_of(url: str) -> str:
    """Return host, path and query of *url* with a star for each number in the path and each value.

    Of a long one, their beginning and three dots.
    """
    # No URL has a NUL.
    url = url.replace("*", "\0")
    host, slash, rest = url[:_LONGEST_SHAPE].partition("://")[2].partition("/")
    path, mark, query = rest.partition("?")
    shape = f"{host}{slash}{_NUMBER.sub('*', path)}{mark}{_VALUE.sub('*', query)}"
    shape = shape.replace("\0", _STAR)
    return shape if len(url) <= _LONGEST_SHAPE else shape + _CUT


def expression_of(shape: str) -> str:
    """Return the ignore expression that the URLs of *shape*, and no others, match."""
    path, mark, query = shape.removesuffix(_CUT).partition("?")
    host, slash, rest = path.partition("/")
    parts = [re.escape(f"//{host}{slash}"), "[0-9]+".join(map(re.escape, rest.split("*")))]
    if mark:
        parts += [r"\?", "[^&;]+".join(map(re.escape, query.split("*")))]
    expression = "".join(parts).replace(_STAR, rf"(?:\*|{_STAR})")
    return expression + ("" if shape.endswith(_CUT) else "$")


class Unkept:
    """What one crawl could not keep."""

    def __init__(self) -> None:
        self.way_of: Callable[[str], Sequence[str]] = lambda url: [url]
        """Returns the way from a requisite at a URL, as a style sheet, to its page, both included."""
        self._pages = self._scripted = self._fetches = self._listed = 0
        self._examples: list[str] = []
        self._not_whole: set[int] = set()
        self._requisites: set[int] = set()
        self._broken: set[int] = set()
        """What is not there, and the requisites that need it themselves."""
        self._by: Counter[str] = Counter()
        self._shapes: Counter[str] = Counter()

    def page(self, url: str, *, is_made_by_scripts: bool) -> None:
        """Count the page at *url*, HTML that was read."""
        self._pages += 1
        if is_made_by_scripts:
            self._scripted += 1
            if len(self._examples) < EXAMPLES:
                self._examples.append(url)

    def listed(self, item: CaptureItem) -> None:
        """Look at the page of *item*, of a list, if it is among the sample; its links are not known."""
        capture = item.capture
        if capture.status != _OK or item.is_revisit:
            return
        # Its row has been made by then, in a crawl.
        content_type, _, _ = item.described or description_of(item)
        if not content_type.startswith(_HTML):
            return
        self._listed += 1
        is_sampled = self._listed <= _ALL_UNTIL or not self._listed % _ONE_OF
        if not is_sampled or item.body_length > _MOST_LOOKED_AT:
            return
        # Late: a list may be without pages, and what looks into them is a twentieth of a start.
        from amicrawl.discovery import is_shell  # noqa: PLC0415

        if (made := is_shell(capture)) is not None:
            self.page(capture.url, is_made_by_scripts=made)

    def lacks(self, parent: str, requisite: str, rule: str) -> None:
        """Count that *requisite*, named by *parent*, is not there, by *rule*."""
        number = hash(requisite)
        if len(self._requisites) < _MOST_REMEMBERED and number not in self._requisites:
            self._requisites.add(number)
            self._by[rule] += 1
        self._note_way(number, parent)

    def needs(self, page: str, requisites: Iterable[str]) -> None:
        """Count *page*, or the page of it, where one of *requisites*, which it names, is not whole.

        What several pages need is requested once: the others are found here.
        """
        for requisite in requisites if self._broken else ():
            if (number := hash(requisite)) in self._broken:
                self._note_way(number, page)
                return

    def _note_way(self, requisite: int, parent: str) -> None:
        *sheets, page = self.way_of(parent)
        if len(self._broken) < _MOST_REMEMBERED:
            self._broken.update([requisite, *map(hash, sheets)])
        if len(self._not_whole) < _MOST_REMEMBERED:
            self._not_whole.add(hash(page))

    def fetched(self, item: CaptureItem) -> None:
        """Count the row of *item*."""
        capture, found = item.capture, item.provenance
        if (capture.failure is not None or capture.status >= 400) and is_requisite(found.route):
            rule = f"status {capture.status}" if capture.failure is None else capture.failure.value
            self.lacks(found.via, capture.url, rule)
        if not item.attempts:
            return
        self._fetches += 1
        self._shapes[shape_of(capture.url)] += 1
        if len(self._shapes) > _MOST_SHAPES:
            # A shape that most fetches are of is never among the rarer half.
            self._shapes = Counter(dict(self._shapes.most_common(_MOST_SHAPES // 2)))

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, as `crawl.json` has it."""
        shape, number = next(iter(self._shapes.most_common(1)), ("", 0))
        return {
            "scripted": {"pages": self._scripted, "of": self._pages, "examples": self._examples},
            "requisites": {
                "pages": len(self._not_whole),
                "requisites": len(self._requisites),
                "by": dict(self._by.most_common()),
            },
            "shape": {"shape": shape, "fetches": number, "of": self._fetches},
        }


def is_requisite(route: str) -> bool:
    """Return whether what was reached by *route* is what a page needs, redirects on the way included."""
    return route.rstrip("R").endswith("E")


def joined_unkept(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what several processes of one crawl could not keep, each host being in one of them."""
    parts = [part for part in parts if part]
    if not parts:
        return {}
    by: Counter[str] = Counter()
    for part in parts:
        by.update(part["requisites"]["by"])
    most = max((part["shape"] for part in parts), key=lambda shape: int(shape["fetches"]))
    scripted = [part["scripted"] for part in parts]
    return {
        "scripted": {
            "pages": sum(part["pages"] for part in scripted),
            "of": sum(part["of"] for part in scripted),
            "examples": [url for part in scripted for url in part["examples"]][:EXAMPLES],
        },
        "requisites": {
            "pages": sum(part["requisites"]["pages"] for part in parts),
            "requisites": sum(by.values()),
            "by": dict(by.most_common()),
        },
        "shape": {**most, "of": sum(part["shape"]["of"] for part in parts)},
    }


def unkept_sentences(unkept: object, directory: str) -> Iterator[str]:
    """Yield what the crawl into *directory* could not keep, by `crawl.json`, a line each.

    *unkept* is foreign input; what is not as `as_dict` gives it is passed over.
    """
    match unkept:
        case {"scripted": {"pages": int(pages), "of": int(of), "examples": [*examples]}} if pages:
            named = ", ".join(map(str, examples[:EXAMPLES]))
            looked_at = f"{of:,} {'page' if of == 1 else 'pages'} looked at"
            have = "has" if pages == 1 else "have"
            yield (
                f"made by scripts: {pages:,} of {looked_at} {have} neither text nor links before their "
                f"scripts run, and scripts are not run ({named}). What these pages show is not in the "
                "archive; open them in a browser: --browser (AMICRAWL_BROWSER=always)"
            )
    match unkept:
        case {"requisites": {"pages": int(pages), "requisites": int(number), "by": {**by}}} if number:
            rules = ", ".join(f"{rule} {count}" for rule, count in list(by.items())[:5])
            lack = "page lacks" if pages == 1 else "pages lack"
            need = "it needs" if pages == 1 else "they need"
            yield (
                f"not whole: {pages:,} {lack} {number:,} of what "
                f"{need} to be shown ({rules}); `amicrawl query {directory} pages_not_whole` names "
                "those that were requested"
            )
    match unkept:
        case {"shape": {"shape": str(shape), "fetches": int(number), "of": int(of)}} if (
            of >= LEAST_FETCHES and 2 * number > of
        ):
            yield (
                f"one shape: {number:,} of {of:,} fetches are {shape}; to leave them out: "
                f"--ignore {quote(expression_of(shape))} (AMICRAWL_IGNORES)"
            )
