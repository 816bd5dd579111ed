"""The queries that are shipped: one SQL file each in `queries/`, read and filled in. Pure.

A file is named by what it returns. It opens with what it returns, in plain words, and lists what it
needs:

    -- Which domains of one top-level domain have many pages?
    -- (more words, if any)
    --
    -- group: published                     one of GROUPS
    -- columns: crawl, subset, url_host_tld, url_host_registered_domain
    -- optional: fetch_redirect              what may be missing in a table, and is empty then
    -- parameter tld (text) = gov: the top-level domain
    -- dialect: where it differs from the query as it was published

and the statement follows, with `$tld` where the value belongs; a line `-- include _NAME` stands for the
file of that name, which several queries begin with. A value becomes a literal of SQL, so what
is shown is what runs, and can be pasted into any DuckDB. A query whose name begins with `captures_`
reads a crawl's `captures.parquet`, as do those about pages; all others read the table of an index.

Some join with a ranking of sites, which is read from a CSV file: without a header, `rank,site` or only
`site`, or with one that has a column called site or domain and perhaps one called rank or globalrank.
Where no rank is given, the order of the lines is the rank.
"""

from __future__ import annotations

import csv
import functools
import glob
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from amicrawl.errors import InputError, UsageError
from amicrawl.invalid import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


TABLE = "ccindex"
"""The relation that queries about a table read from."""

CAPTURES = "captures"
"""The relation that queries about a capture index read from."""

RANKING = "ranking"
"""The relation (rank, site) that some queries join with; the kind of parameter that fills it."""

GROUPS = {
    "published": "As Common Crawl publishes them",
    "collection": "More about a collection",
    "crawl": "A crawl: fetches, hosts, failures",
    "ways": "How a crawl found its URLs",
    "pages": "What pages need and request",
    "crawls": "Two crawls: new, gone, changed, moved",
}
"""The groups that queries are listed in, in order, with their headings."""

_MACROS = "_macros"
_INCLUDE = re.compile(r"^-- include (_\w+)$", re.MULTILINE)
_HEADER = re.compile(r"-- (group|columns|optional|parameter|dialect): ?(.*)|-- (parameter) (.*)")
_PARAMETER = re.compile(r"(\w+) \(([^)]+)\) = (.*?): (.+)")
_PLACE = re.compile(r"\$(\w+)")
_WHOLE = re.compile(r"[0-9]{1,18}")
_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?Z?)?"
)
_NUMBER = re.compile(r"([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Parameter:
    """What can be chosen in a query."""

    name: str
    kind: str
    """`text`, `whole`, `number`, `time`, `ranking` (a file), or words to choose from, between `|`."""
    default: str
    meaning: str

    def literal(self, value: str) -> str:
        """Return *value* as SQL writes it; UsageError where it is not of this kind."""
        if self.kind in {"whole", "number"}:
            pattern = _WHOLE if self.kind == "whole" else _NUMBER
            if not pattern.fullmatch(value):
                words = "a whole number" if self.kind == "whole" else "a number"
                raise UsageError(f"Parameter {self.name} is {words} ({self.meaning}); {value!r} is not.")
            return value
        if self.kind == "time" and not _TIME.fullmatch(value):
            raise UsageError(
                f"Parameter {self.name} is a time in UTC such as 2026-11-23 or 2026-11-23T12:30 "
                f"({self.meaning}); {value!r} is not."
            )
        if "|" in self.kind and value not in self.kind.split("|"):
            raise UsageError(
                f"Parameter {self.name} is one of {', '.join(self.kind.split('|'))} ({self.meaning}); "
                f"{value!r} is not."
            )
        return quoted(value)


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """One shipped query."""

    name: str
    sentence: str
    """What it returns, in plain words."""
    group: str
    """The group that it is listed in, a key of GROUPS."""
    columns: tuple[str, ...]
    """Columns that the table must have."""
    optional: tuple[str, ...]
    """Columns of text that are taken as empty where the table has none."""
    parameters: tuple[Parameter, ...]
    text: str
    """The whole file."""
    statement: str
    """The statement alone, with `$name` where the value of a parameter belongs."""

    @property
    def relation(self) -> str:
        """The relation that it reads from."""
        is_of_captures = self.name.startswith(f"{CAPTURES}_") or self.group == "pages"
        return CAPTURES if is_of_captures else TABLE

    @property
    def ranking(self) -> Parameter | None:
        """The parameter that names the file of the ranking, if it joins with one."""
        return next((each for each in self.parameters if each.kind == RANKING), None)

    def chosen(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the value of each parameter: of *values*, else its default; UsageError for others."""
        known = {each.name: each.default for each in self.parameters}
        for name in values:
            if name not in known:
                has = f"It has {', '.join(known)}." if known else "It has none."
                raise UsageError(f"{self.name} has no parameter {name}{_meant(name, known)}. {has}")
        return {**known, **values}

    def sql(self, values: Mapping[str, str]) -> str:
        """Return the statement with *values*, or the defaults, in their places."""
        chosen = self.chosen(values)
        literals = {each.name: each.literal(chosen[each.name]) for each in self.parameters}
        return _PLACE.sub(lambda place: literals[place[1]], self.statement)


@functools.cache
def named_queries() -> Mapping[str, NamedQuery]:
    """Return all queries by name, in alphabetical order."""
    found = {}
    files = resources.files(__package__).joinpath("queries").iterdir()
    for name in sorted(file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql")):
        if not name.startswith("_"):
            text = _INCLUDE.sub(lambda line: _file(line[1]).rstrip(), _file(name))
            found[name] = parse_query(name, text)
    return found


def _file(name: str) -> str:
    file = resources.files(__package__).joinpath("queries", f"{name}.sql")
    return file.read_text(encoding="utf-8")


def named_query(name: str) -> NamedQuery:
    """Return the query *name*, hyphens allowed; UsageError with the likeliest name otherwise."""
    known = named_queries()
    plain = name.removesuffix(".sql").replace("-", "_")
    if plain not in known:
        raise UsageError(
            f"There is no query {name}{_meant(plain, known)}. amicrawl query --list shows all; "
            "your own goes behind --sql."
        )
    return known[plain]


def macros() -> Mapping[str, str]:
    """Return the statement that makes each macro, by the macro's name."""
    text = re.sub(r"^--.*\n", "", _file(_MACROS), flags=re.MULTILINE)
    statements = (each.strip() for each in re.split(r";\s*\n", text))
    return {each.split("(")[0].split()[-1]: each for each in statements if each}


def macros_used(sql: str) -> list[str]:
    """Return the statements that make the macros whose names stand in *sql*."""
    return [made for name, made in macros().items() if re.search(rf"\b{name}\s*\(", sql, re.IGNORECASE)]


def parse_query(name: str, text: str) -> NamedQuery:
    """Read a query's file; ValueError where its header is not as described above."""
    head, _, statement = text.partition("\n\n")
    words: list[str] = []
    kinds = ("group", "columns", "optional", "parameter", "dialect")
    listed: dict[str, list[str]] = {kind: [] for kind in kinds}
    for line in head.splitlines():
        match = _HEADER.fullmatch(line)
        if match:
            listed[match[1] or match[3]].append(match[2] or match[4] or "")
        elif line != "--":
            words.append(line.removeprefix("-- "))
    parameters = []
    for line in listed["parameter"]:
        match = _PARAMETER.fullmatch(line)
        if match is None:
            raise ValueError(f"{name}: no parameter is described by {line!r}")
        parameters.append(Parameter(*match.groups()))
    if not words or not listed["columns"] or not statement.strip():
        raise ValueError(f"{name}: a query, its columns and a statement are needed")
    group = " ".join(listed["group"])
    if group not in GROUPS:
        raise ValueError(f"{name}: the group is one of {', '.join(GROUPS)}, not {group!r}")
    return NamedQuery(
        name=name,
        sentence=words[0],
        group=group,
        columns=_names(listed["columns"]),
        optional=_names(listed["optional"]),
        parameters=tuple(parameters),
        text=text,
        statement=statement.strip(),
    )


def quoted(text: str) -> str:
    """Return *text* as a literal of SQL; UsageError for NUL, which no literal can hold."""
    if "\0" in text:
        raise UsageError("A parameter cannot hold the character NUL.")
    return "'" + text.replace("'", "''") + "'"


def _names(lines: list[str]) -> tuple[str, ...]:
    return tuple(name for line in lines for name in re.split(r",\s*", line) if name)


def _meant(name: str, known: Mapping[str, object]) -> str:
    meant = nearest(name, known)
    return f" (did you mean {meant}?)" if meant else ""


_SITE_NAMES = ("site", "domain")
_RANK_NAMES = ("rank", "globalrank")
_MOST_COLUMNS = 64
_LONGEST_LINE = 65_536


def ranking_of_file(path: Path) -> str:
    """Return the statement that makes the ranking of the CSV file *path*; InputError if it is none."""
    cells, site, rank, header = _layout(path)
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(cells))
    rows = (
        f"read_csv({quoted(glob.escape(str(path.absolute())))}, header = false, skip = {int(header)}, "
        f"delim = ',', quote = '\"', columns = {{{columns}}})"
    )
    place = "row_number() OVER ()" if rank is None else f"CAST(c{rank} AS BIGINT)"
    chosen = f"{place} AS rank, lower(trim(c{site})) AS site"
    return f"CREATE TABLE {RANKING} AS\nSELECT {chosen}\nFROM {rows}"  # quoted above


def ranking_of_table() -> str:
    """Return the statement that ranks the thousand most captured domains of the table itself."""
    return (
        f"CREATE TABLE {RANKING} AS\n"
        "SELECT row_number() OVER (ORDER BY count(*) DESC, url_host_registered_domain) AS rank,\n"
        "       url_host_registered_domain AS site\n"
        f"FROM {TABLE}\n"
        "WHERE url_host_registered_domain IS NOT NULL\n"
        "GROUP BY url_host_registered_domain\n"
        "ORDER BY rank\n"
        "LIMIT 1000"
    )


def _layout(path: Path) -> tuple[int, int, int | None, bool]:
    """Return the number of columns, those of site and rank, and whether the first line is a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = next(csv.reader([lines.readline(_LONGEST_LINE)]), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"The ranking {path} cannot be read as CSV: {reason}. Check path and file."
        ) from error
    names = [cell.strip().lower() for cell in first]
    site = next((names.index(name) for name in _SITE_NAMES if name in names), None)
    if site is not None:
        rank = next((names.index(name) for name in _RANK_NAMES if name in names), None)
        return len(names), site, rank, True
    if len(names) == 1 and names[0]:
        return 1, 0, None, False
    if 2 <= len(names) <= _MOST_COLUMNS and names[0].isascii() and names[0].isdigit():
        return len(names), 1, 0, False
    raise InputError(
        f"The ranking {path} begins with neither rank,site nor a header with a column called site or "
        "domain. Give it one of these."
    )
