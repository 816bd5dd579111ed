"""Blocks of CDXJ lines into batches: every line at once that has the form of one looked at before. Pure.

The lines of a program differ in their values only: what stands between two values is the same in all
lines of a `Form`. So quotes are looked for once, one line of each form is parsed as JSON, and those like
it are known by comparing what stands between their values. Lines that have the form of none, escapes,
numbers in place of text, keys without host or 17-digit times go one by one through `rows`, which alone
decides; both ways give the same rows, in the same order.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.report.batch import Batch, batch_of_rows, interleaved
from amicrawl.report.cdx_batches import Lines
from amicrawl.report.forms import form_of
from amicrawl.report.keys import are_uniform
from amicrawl.report.rows import CDXJ_FACETS, MOST_DIGITS, Row, row_of_cdxj
from amicrawl.report.texts import PADDING, Texts
from amicrawl.report.times import are_dates, times_of

if TYPE_CHECKING:
    from amicrawl.report.forms import Form, Values
    from amicrawl.report.words import Flags, Numbers

_NEEDED = ("url", "mime", "status", "digest", "length")
_META = b"!meta"
_MOST_FORMS = 24
_BEFORE_JSON = 16
"""Octets of the time and the blanks around it."""

_LINE_FEED = ord("\n")
_BLANK = ord(" ")
_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_DELETE = 127


def cdxj_lines(block: bytes) -> Lines:
    """Return what the whole lines of *block* are."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    lines = _lines(block if block.endswith(b"\n") else block + b"\n")
    parsed = _parsed(lines)
    batch, fit = _checked(lines, parsed)
    even = parsed.rows if fit.all() else parsed.rows[fit]
    batch = batch if fit.all() else batch.at(fit)
    return Lines(batch, Counter()) if len(even) == len(lines.ends) else _with_odd(lines, batch, even)


class _Lines(NamedTuple):
    """Where lines are, and where quotes are in them."""

    octets: bytes
    begins: Numbers
    ends: Numbers
    plain: Flags
    """Whether a line has neither escapes nor what JSON forbids."""
    quotes: Numbers
    first_quote: Numbers
    """Which of `quotes` is the first of each line."""
    quotes_of: Numbers
    """How many each line has."""


class _Parsed(NamedTuple):
    """Lines whose forms are known, and where the values of their fields are."""

    rows: Numbers
    braces: Numbers
    """Where the JSON of each begins."""
    fields: dict[str, Texts]
    """Of each field that one of the lines has; empty where a line has not."""


def _lines(block: bytes) -> _Lines:
    octets = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(octets == _LINE_FEED)
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    quotes = np.flatnonzero(octets == _QUOTE)
    first = np.searchsorted(quotes, begins)
    plain = np.ones(len(ends), np.bool_)
    if np.count_nonzero(octets < _BLANK) != len(ends) or b"\\" in block:
        strange = (octets < _BLANK) & (octets != _LINE_FEED) | (octets == _BACKSLASH)
        plain[np.searchsorted(ends, np.flatnonzero(strange))] = False
    if not _is_unicode(block):
        plain[np.searchsorted(ends, np.flatnonzero(octets > _DELETE))] = False
    return _Lines(
        block + PADDING, begins, ends, plain, quotes, first, np.diff(first, append=len(quotes))
    )


def _is_unicode(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parsed(lines: _Lines) -> _Parsed:
    """Find the forms of *lines*, and by them the values of all that have one."""
    count = len(lines.ends)
    known = np.zeros(count, np.bool_)
    braces = np.zeros(count, np.int64)
    places = {name: np.zeros((2, count), np.int64) for name in _NEEDED}
    rest = np.flatnonzero(lines.plain & (lines.quotes_of > 0))
    for _ in range(_MOST_FORMS):
        if not len(rest):
            break
        # One in the middle: at the ends of a file stand the strangest lines.
        model = int(rest[len(rest) // 2])
        form = _form_of_line(lines, model)
        if form is not None:
            rows, values = _of_form(form, lines, rest)
            known[rows] = True
            braces[rows] = form.begins(values)
            for name, begins, ends in zip(form.names, *values, strict=True):
                if name in CDXJ_FACETS and name not in places:
                    places[name] = np.zeros((2, count), np.int64)
                if name in places:
                    places[name][0, rows], places[name][1, rows] = begins, ends
        rest = rest[~known[rest] & (rest != model)]
    fields = {name: Texts(lines.octets, *place) for name, place in places.items()}
    if known.all():
        return _Parsed(np.arange(count), braces, fields)
    rows = np.flatnonzero(known)
    return _Parsed(rows, braces[rows], {name: texts.at(rows) for name, texts in fields.items()})


def _of_form(form: Form, lines: _Lines, rest: Numbers) -> tuple[Numbers, Values]:
    """Return which lines of *rest* have that *form*, and where their values stand."""
    rows = rest[lines.quotes_of[rest] == form.quotes]
    values = form.values(lines.quotes, lines.first_quote[rows])
    fit = form.fits(lines.octets, values, lines.ends[rows])
    return (rows, values) if fit.all() else (rows[fit], values.at(fit))


def _form_of_line(lines: _Lines, at: int) -> Form | None:
    line = lines.octets[int(lines.begins[at]) : int(lines.ends[at])]
    return form_of(line[max(line.find(b"{"), 0) :])


def _checked(lines: _Lines, parsed: _Parsed) -> tuple[Batch, Flags]:
    """Return the batch of the lines *parsed*, and which are surely as the slow path would have them."""
    octets = np.frombuffer(lines.octets, np.uint8)
    begins, key_ends = lines.begins[parsed.rows], parsed.braces - _BEFORE_JSON
    fit = key_ends > begins
    key_ends = np.where(fit, key_ends, begins)
    fit &= (octets[key_ends] == _BLANK) & (octets[parsed.braces - 1] == _BLANK)
    # Copied out of the lines, because keys will be looked at four times.
    key = Texts(lines.octets, begins, key_ends).compact()
    fit &= are_uniform(key)
    if b" " in key.octets:
        fit &= key.places_of(b" ") == key.ends
    time, readable = times_of(Texts(lines.octets, key_ends + 1, parsed.braces - 1))
    fit &= readable & are_dates(time)
    status, readable = parsed.fields["status"].numbers(longest=3)
    fit &= readable & ((status < 0) | (parsed.fields["status"].lengths == 3))
    size, readable = parsed.fields["length"].numbers(longest=MOST_DIGITS)
    fit &= readable
    batch = Batch(
        key=key,
        time=time,
        mime=parsed.fields["mime"].hyphened(),
        status=status,
        size=size,
        url=parsed.fields["url"],
        digest=parsed.fields["digest"].hyphened(),
        facets={
            facet: parsed.fields[name] for name, facet in CDXJ_FACETS.items() if name in parsed.fields
        },
    )
    return batch, fit


def _with_odd(lines: _Lines, batch: Batch, even: Numbers) -> Lines:
    """Return the rows of *batch*, which are the lines *even*, and those of all others one by one."""
    at: list[int] = []
    rows: list[Row] = []
    skipped: Counter[str] = Counter()
    odd = np.delete(np.arange(len(lines.ends)), even)
    for number in odd[lines.begins[odd] < lines.ends[odd]].tolist():
        whole = lines.octets[int(lines.begins[number]) : int(lines.ends[number])]
        for line in whole.splitlines():
            if not line.strip() or line.startswith(_META):
                continue
            try:
                rows.append(row_of_cdxj(line))
            except ValueError as error:
                skipped[str(error)] += 1
            else:
                at.append(number)
    if not rows:
        return Lines(batch, skipped)
    return Lines(interleaved(batch, even, batch_of_rows(rows), at), skipped)
