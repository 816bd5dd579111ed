"""Forms: what lines of CDXJ that one program wrote have in common, all but their values. Pure.

    {"url": "http://a.org/", "mime": "text/html"}
    ^^^^^^^^^             ^^^^^^^^^^^^         ^^

The marked octets are the form. Another line with the same octets there, and with neither quotes nor
escapes in its values, parses to an object of the same names. Only flat objects have a form, all of whose
values are text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from amicrawl.report.texts import Texts

if TYPE_CHECKING:
    from amicrawl.report.words import Flags, Numbers

_QUOTES_OF_A_FIELD = 4


class Values(NamedTuple):
    """Where the values of lines stand: by field, then by line."""

    begins: Numbers
    ends: Numbers

    def at(self, lines: Flags) -> Values:
        """Return where those of *lines* stand."""
        return Values(self.begins[:, lines], self.ends[:, lines])


class Form(NamedTuple):
    """The names of a line's fields, and all that stands around their values."""

    names: tuple[str, ...]
    around: tuple[bytes, ...]
    """What stands before each value and behind the last, with the quotes of the values."""

    @property
    def quotes(self) -> int:
        """How many quotes such a line has."""
        return _QUOTES_OF_A_FIELD * len(self.names)

    def values(self, quotes: Numbers, first: Numbers) -> Values:
        """Return where values stand in lines, each of which begins with that *first* of *quotes*."""
        opening = first + np.arange(2, self.quotes, _QUOTES_OF_A_FIELD)[:, None]
        return Values(quotes[opening] + 1, quotes[opening + 1])

    def begins(self, values: Values) -> Numbers:
        """Return where the braces of lines stand that have these *values*."""
        begins: Numbers = values.begins[0] - len(self.around[0])
        return begins

    def fits(self, octets: bytes, values: Values, ends: Numbers) -> Flags:
        """Return which lines, with these *values* and *ends*, have this form."""
        begins = self.begins(values)
        fit = begins >= 0
        starts = [np.maximum(begins, 0), *values.ends]
        stops = [*values.begins, ends]
        for start, stop, known in zip(starts, stops, self.around, strict=True):
            fit &= Texts(octets, start, stop).are(known)
        return fit


def form_of(text: bytes) -> Form | None:
    """Return the form of the JSON object *text*, if it has one."""
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    pieces = text.split(b'"')
    # Names that occur twice, escaped quotes and objects within objects make another number of quotes.
    flat = isinstance(fields, dict) and len(pieces) == _QUOTES_OF_A_FIELD * len(fields) + 1
    if not flat or not fields or not all(isinstance(value, str) for value in fields.values()):
        return None
    if b"\\" in text:
        return None
    count = len(fields)
    around = [b'"'.join(pieces[_QUOTES_OF_A_FIELD * at :][:3]) for at in range(count + 1)]
    return Form(
        names=tuple(name.decode() for name in pieces[1::_QUOTES_OF_A_FIELD]),
        around=tuple(b'"' * (at > 0) + text + b'"' * (at < count) for at, text in enumerate(around)),
    )
