"""Counters by domain and year, as cdx-summarize has them: what was archived of each, and when.

    example.com {"2012": {"n_html": 3, ..., "n_total": 5, "s_html": 2119, ..., "s_total": 3519}}

One line per second-level domain (the last two labels, whatever the public suffix is) or host. Counted
are responses of status 2xx; sizes are those of compressed records. Categories, and their oddities, are
that tool's: `text/plain` is html, a CDXJ line without status (a revisit) is other.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.archive.lines import octet_blocks
from amicrawl.errors import DamagedFileError, InputError
from amicrawl.urls import registrable_domain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CATEGORIES = (
    "html",
    "image",
    "video",
    "audio",
    "pdf",
    "js",
    "json",
    "font",
    "css",
    "other",
    "http",
    "https",
    "total",
)
FIELDS = tuple(f"{kind}_{category}" for kind in "ns" for category in CATEGORIES)

_EXACT = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "html",
    "text/css": "css",
    "application/pdf": "pdf",
    "application/javascript": "js",
    "text/javascript": "js",
    "application/x-javascript": "js",
    "application/json": "json",
    "text/json": "json",
    "application/vnd.ms-fontobject": "font",
}
_BY_PREFIX = {
    "image/": "image",
    "video/": "video",
    "audio/": "audio",
    "font/": "font",
    "application/font": "font",
    "application/x-font": "font",
}
_NEVER = "application/warc-fields"
_INDEX = {category: index for index, category in enumerate(CATEGORIES)}
_SIZES = len(CATEGORIES)
_LEGENDS = {
    "CDX N b a m s": "cdxNbams",
    "CDX N b a m s k r M S V g": "cdxNbamskrMSVg",
    "CDX N b a m s k S": "cdx7",
}


class Years:
    """Counters by key, and by year or month."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, list[int]]] = {}

    def add(self, key: str, year: str, category: str, *, scheme: str, size: int) -> None:
        """Count one capture."""
        row = self._rows.setdefault(key, {}).setdefault(year, [0] * len(FIELDS))
        for name in (category, scheme, "total"):
            at = _INDEX.get(name)
            if at is not None:
                row[at] += 1
                row[at + _SIZES] += size

    def absorb_line(self, line: str, *, fold: Callable[[str], str], yearly: bool) -> None:
        """Count what a line of such a summary has; ValueError where it is none."""
        key, _, text = line.partition(" ")
        try:
            years = [
                (year, [(FIELDS.index(name), int(value)) for name, value in fields.items()])
                for year, fields in json.loads(text).items()
                # Half a surrogate pair, which JSON can name, could not be printed.
                if year.encode()
            ]
        except (ArithmeticError, ValueError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError("not a line of a summary by year") from error
        for year, numbers in years:
            kept = year[:4] if yearly else year
            row = self._rows.setdefault(fold(key), {}).setdefault(kept, [0] * len(FIELDS))
            for at, number in numbers:
                row[at] += number

    def lines(self, *, compact: bool = False) -> Iterator[str]:
        """Yield the summary, sorted by key; *compact* without zeros."""
        for key, years in sorted(self._rows.items()):
            shown = {
                year: {
                    name: value for name, value in zip(FIELDS, row, strict=True) if value or not compact
                }
                for year, row in sorted(years.items())
            }
            yield f"{key} {json.dumps(shown)}"

    def totals(self) -> Iterator[str]:
        """Yield `key year captures bytes`; totals of zero are left out."""
        for key, years in sorted(self._rows.items()):
            for year, row in sorted(years.items()):
                if row[_SIZES - 1]:
                    yield f"{key} {year} {row[_SIZES - 1]} {row[-1]}"

    def csv(self) -> Iterator[str]:
        """Yield a header and a line per key and year, fields in alphabetical order; zeros left out."""
        order = sorted(range(len(FIELDS)), key=FIELDS.__getitem__)
        yield " ".join(["domainname", "year", *(FIELDS[at] for at in order)])
        for key, years in sorted(self._rows.items()):
            for year, row in sorted(years.items()):
                if any(row):
                    yield " ".join([key, year, *(str(row[at]) for at in order)])

    def present(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return captures and bytes by key and year."""
        return {
            (key, year): (row[_SIZES - 1], row[-1])
            for key, years in self._rows.items()
            for year, row in years.items()
            if row[_SIZES - 1]
        }


def shared_years(archives: dict[str, Years]) -> dict[str, list[int]]:
    """Return, for each combination of *archives*, how many keys and years just these hold, and how much.

    The name is `A AND B`; the list holds that number, then captures and bytes of each.
    """
    holders: dict[tuple[str, str], list[str]] = {}
    present = {name: years.present() for name, years in archives.items()}
    for name, rows in present.items():
        for entry in rows:
            holders.setdefault(entry, []).append(name)
    shared: dict[str, list[int]] = {}
    for entry, names in holders.items():
        sums = shared.setdefault(" AND ".join(names), [0] * (1 + 2 * len(names)))
        sums[0] += 1
        for index, name in enumerate(names):
            captures, size = present[name][entry]
            sums[1 + 2 * index] += captures
            sums[2 + 2 * index] += size
    return shared


def shared_csv(shared: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield *shared*, of `shared_years`, as three blocks of CSV: hosts, captures, and bytes."""
    yield "Hosts"
    for combination, sums in shared.items():
        yield f"{combination},{sums[0]}"
    for at, title in ((1, "Count of URLs"), (2, "Size of compressed records")):
        yield ""
        yield title
        for combination, sums in shared.items():
            yield ",".join([combination, *(str(number) for number in sums[at::2])])


def format_of(line: str) -> str | None:
    """Return the format of a file that begins with *line*; None where that tool refuses it."""
    if line.strip().startswith("CDX "):
        return _LEGENDS.get(line.strip())
    words = line.split()
    if len(words) > 2 and len(words[1]) == 14 and line.rstrip().endswith('"}'):
        return "cdxj"
    return {7: "cdx7", 10: "cdxNbams"}.get(len(words))


def count_years(
    lines: Iterable[str], years: Years, *, form: str, monthly: bool, full_host: bool
) -> dict[str, int]:
    """Count *lines* of the format *form* into *years*, and return lines that were skipped by reason."""
    skipped: dict[str, int] = {}
    for line in lines:
        try:
            _count(line, years, form, monthly=monthly, full_host=full_host)
        except ValueError as error:
            skipped[str(error)] = skipped.get(str(error), 0) + 1
    return skipped


def _count(line: str, years: Years, form: str, *, monthly: bool, full_host: bool) -> None:
    if not line.strip() or line.lstrip().startswith("CDX "):
        return
    key, time, url, mime, status, size = _cdxj(line) if form == "cdxj" else _columns(line, form)
    if mime == _NEVER or (status is not None and not status.startswith("2")):
        return
    category = "other" if status is None else category_of(mime)
    host = _host(key, form)
    name = host if full_host else _second_level(host)
    scheme = url.partition(":")[0].lower()
    years.add(name, time[: 6 if monthly else 4], category, scheme=scheme, size=size)


def _cdxj(line: str) -> tuple[str, str, str, str, str | None, int]:
    words = line.split(" ", 2)
    try:
        fields: dict[str, Any] = orjson.loads(words[2])
        status = fields.get("status")
        size = int(fields.get("length", 0))
    except (IndexError, ValueError, AttributeError, TypeError) as error:
        raise ValueError("not key, time and JSON") from error
    if status is not None and not isinstance(status, str):
        raise ValueError("a status that is not a string")
    return words[0], words[1], str(fields.get("url", "")), str(fields.get("mime", "")), status, size


def _columns(line: str, form: str) -> tuple[str, str, str, str, str | None, int]:
    words = line.split()
    at = {"cdx7": (7, 6), "cdxNbams": (5, None), "cdxNbamskrMSVg": (11, 8)}[form]
    if len(words) < at[0]:
        raise ValueError("fewer columns than the format has")
    size = 0 if at[1] is None or words[at[1]] == "-" else words[at[1]]
    if not (str(size).isascii() and str(size).isdigit()):
        raise ValueError("a size that is not a number")
    return words[0], words[1], words[2], words[3], words[4], int(size)


def _host(key: str, form: str) -> str:
    """Return the host of *key* without port; of `dns:` keys what that tool makes of them."""
    if form == "cdxNbams":
        return key.partition("/")[0].partition(":")[0]
    labels = key.partition(")")[0].partition(":")[0]
    return ".".join(reversed(labels.split(",")))


def _second_level(host: str) -> str:
    """Return the last two labels of *host*; empty where it has but one."""
    labels = host.split(".")
    return ".".join(labels[-2:]) if len(labels) > 1 else ""


def category_of(mime: str) -> str:
    """Return the category of the media type *mime*, case-sensitive."""
    exact = _EXACT.get(mime)
    if exact is not None:
        return exact
    return next((category for start, category in _BY_PREFIX.items() if mime.startswith(start)), "other")


def folded(how: str) -> Callable[[str], str]:
    """Return what folds hosts: `none`, `lvl2` (two labels) or `psl` (the registrable domain)."""
    ways: dict[str, Callable[[str], str]] = {
        "none": str,
        "lvl2": lambda host: ".".join(host.split(".")[-2:]),
        "psl": registrable_domain,
    }
    return ways[how]


@dataclass(slots=True)
class YearsRead:
    """What was counted, and what was not."""

    years: Years = field(default_factory=Years)
    skipped: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)
    """A sentence for each input that is truncated."""


def read_years(
    paths: Sequence[str],
    *,
    monthly: bool = False,
    full_host: bool = False,
    fold: Callable[[str], str] = str,
) -> YearsRead:
    """Count *paths*, each an index or the lines of an earlier summary, whose hosts *fold* folds.

    InputError where a file cannot be opened, or is in a format that cdx-summarize refuses.
    """
    read = YearsRead()
    for path in paths:
        try:
            for lines in _line_lists(path):
                _count_block(lines, read, path, monthly=monthly, full_host=full_host, fold=fold)
        except DamagedFileError as error:
            read.damage.append(str(error))
    return read


def _line_lists(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of *path* block by block, each time with the first line of the file."""
    first = ""
    for block in octet_blocks(Path(path)):
        lines = block.decode("utf-8", "replace").split("\n")
        first = first or lines[0]
        yield first, lines


def _count_block(
    lines: tuple[str, list[str]],
    read: YearsRead,
    path: str,
    *,
    monthly: bool,
    full_host: bool,
    fold: Callable[[str], str],
) -> None:
    first, block = lines
    if first.partition(" ")[2].startswith("{"):
        for line in filter(None, block):
            try:
                read.years.absorb_line(line, fold=fold, yearly=not monthly)
            except ValueError as error:
                read.skipped[str(error)] += 1
        return
    form = format_of(first)
    if form is None:
        raise InputError(
            f"{path} is in no format that cdx-summarize reads (CDXJ, 7 columns, N b a m s, or CDX-11 "
            "with its legend). Leave out --compat to summarise it."
        )
    read.skipped.update(count_years(block, read.years, form=form, monthly=monthly, full_host=full_host))
