"""Texts and figures as they are shown: made safe to send, and formatted for people. Pure.

Texts from the web and from Redis lose what no page or feed can carry (half surrogates, U+FFFF) and what
shows a text in another order than it is in. Nothing is escaped here: templates and the browser's DOM
do that.

Figures are formatted for the templates; the browser formats them the same way once it takes over
(`static/format.js`). What is unknown is a dash, never a zero.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from amicrawl.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST = 8192
"""Characters of a text that is sent."""
UNKNOWN = "–"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_CLASSES = {"r1xx": "1", "r2xx": "2", "r3xx": "3", "r4xx": "4", "r5xx": "5", "runk": "k"}
_DECIMAL = Context(prec=400, rounding=ROUND_HALF_UP)  # a float has at most 309 digits before the point
_LAST_MOMENT = 253_402_300_799  # the end of the year 9999, where datetime ends
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


class Part(NamedTuple):
    """One class of responses in a bar that is 100 wide."""

    mark: str
    """`1` to `5`, or `k` for what had no status."""
    name: str
    amount: int
    begin: float
    width: float


def plain(text: str, *, limit: int = LONGEST) -> str:
    r"""Return *text*, cut to *limit*, with controls and marks that turn around shown as `\x1b`."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isascii() and cut.isprintable():
        return cut
    return _ODD.sub(_shown, cut)


def one_line(text: str) -> str:
    r"""Return *text* as `plain` does, with its line ends and tabs as `\n` and `\t`.

    A regular expression that is written so matches the same.
    """
    return plain(text).replace("\n", r"\n").replace("\t", r"\t")


def link(url: str) -> str | None:
    """Return *url* where a click may follow it: http or https, with a host; else None."""
    if (
        len(url) > LONGEST
        or not url.isprintable()
        or not url.casefold().startswith(("http://", "https://"))
    ):
        return None
    try:
        return url if urlsplit(url).hostname else None
    except ValueError:
        return None


def whole(value: Any) -> int | None:
    """Return *value* if it is a whole number of sane size, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return int(value)


def fraction(value: Any) -> float | None:
    """Return *value* if it is a number of sane size, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return float(value)


def text_of(said: Mapping[str, Any], name: str, *, limit: int = LONGEST) -> str:
    """Return the text *name* of *said*, empty where it is none."""
    value = said.get(name)
    return plain(value, limit=limit) if isinstance(value, str) else ""


def _shown(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def _rounded(value: float, digits: int = 0) -> Decimal:
    """Round half up, as `toFixed` in the scripts; Python's own formatting rounds half to even."""
    return Decimal(value).quantize(Decimal(1).scaleb(-digits), context=_DECIMAL)


def number(value: float | None) -> str:
    """Return *value* with its thousands apart."""
    return UNKNOWN if value is None else f"{_rounded(value):,f}"


def short(value: int) -> str:
    """Return *value* in at most four characters, for where a figure is one of many: `9.7k`, `1.2M`."""
    for step, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= 0.9995 * step:
            scaled = value / step
            return f"{_rounded(scaled, 1 if scaled < 9.95 else 0):f}{unit}"
    return str(value)


def size(value: float | None) -> str:
    """Return that many bytes as the command line does, in the unit that leaves at most three digits."""
    if value is None:
        return UNKNOWN
    left = float(value)
    for unit in _UNITS[:-1]:
        if abs(left) < 999.5:
            return f"{_rounded(left, 0 if unit == 'B' or left >= 99.95 else 1):f} {unit}"
        left /= 1024
    return f"{_rounded(left, 1):,f} {_UNITS[-1]}"


def rate(value: float | None) -> str:
    """Return a number a second; one decimal below a hundred."""
    if value is None:
        return UNKNOWN
    return f"{_rounded(value, 1 if value < 99.95 else 0):,f}"


def percent(value: float | None) -> str:
    """Return *value*, which is of a hundred already."""
    return UNKNOWN if value is None else f"{_rounded(value):f} %"


def moment(value: float | None) -> str:
    """Return a Unix time in UTC, to the second."""
    if value is None or not 0 <= value <= _LAST_MOMENT:
        return UNKNOWN
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")


def iso(value: float | None) -> str:
    """Return a Unix time as the `datetime` of a `<time>`; empty where it is not known."""
    text = moment(value)
    return "" if text == UNKNOWN else text.replace(" ", "T") + "Z"


def clock(value: float | None) -> str:
    """Return the time of day of a Unix time, in UTC."""
    return moment(value)[-8:] if moment(value) != UNKNOWN else "--:--:--"


def span(seconds: float | None) -> str:
    """Return a length of time in its two largest units."""
    if seconds is None:
        return UNKNOWN
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def bar(responses: Mapping[str, int]) -> list[Part]:
    """Return the classes of *responses*, laid end to end over a width of 100."""
    total = sum(responses.get(name, 0) for name in _CLASSES) or 1
    parts = []
    begin = 0.0
    for name, mark in _CLASSES.items():
        count = responses.get(name, 0)
        width = round(100 * count / total, 3)
        shown = "no status" if mark == "k" else f"{mark}xx"
        parts.append(Part(mark, shown, count, round(begin, 3), width))
        begin += width
    return parts


def level(value: float | None) -> str:
    """Return how full something is: `good`, `warn` from 80 %, `bad` from 90 %."""
    if value is None or value < 80:
        return "good"
    return "bad" if value >= 90 else "warn"


def setting_value(setting: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return how a page shows the value of a *setting*; as `settingText` in format.js."""
    said = [values[field["name"]] for field in setting["fields"]]
    first = setting["fields"][0]
    if first["kind"] == "flag":
        return str(first["words"][not said[0]])
    if first["kind"] == "line":
        return said[0] or UNKNOWN
    ends = " to ".join(dict.fromkeys(number(value) for value in said))
    return f"{ends} {first['unit']}".strip()


FILTERS: Mapping[str, Callable[..., object]] = {
    "number": number,
    "counted": counted,
    "short": short,
    "size": size,
    "rate": rate,
    "percent": percent,
    "moment": moment,
    "iso": iso,
    "clock": clock,
    "span": span,
    "bar": bar,
    "level": level,
    "setting_value": setting_value,
}
"""By the name under which a template uses it."""
