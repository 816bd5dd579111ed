r"""Log lines that nothing from the web can forge: text with escapes, or one JSON object a line. Pure.

A URL, a header or the text of an exception may hold anything. Written raw, a line break begins a line
that looks like one of ours, an escape sequence moves the cursor of a terminal that shows the log,
a bidirectional override shows words in another order than they are in. So everything unprintable is
shown as Python would write it (`\x1b`, `\u202e`, `\n`), whether it is printed or decoded from JSON.

Line breaks of a message's own layout (a table of statistics) and those of a traceback stay in the text
format, but what follows them is indented: a line that begins at the margin is always one of ours.
"""

from __future__ import annotations

import copy
import json
import logging
from datetime import UTC, datetime
from numbers import Number
from typing import Any

LIMIT = 16_384
"""Characters after which a message is cut; also the lines of an exception, each."""
LINES = 400
"""Lines of an exception that are kept: the last ones, where it says what happened."""
MARGIN = "    "

_LAID_OUT = frozenset(
    {
        "scrapy.addons",
        "scrapy.crawler",
        "scrapy.middleware",
        "scrapy.utils.log",
    }
)
"""Loggers that pass text of several lines as an argument, and nothing of it comes from the web."""


def visible(text: str, *, limit: int = LIMIT) -> str:
    """Return *text* with everything unprintable escaped, cut to *limit* characters of it."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def visible_lines(text: str) -> list[str]:
    """Return the lines of *text*, apart at line feeds only, each made visible; the last `LINES`."""
    return [visible(line) for line in text.split("\n")[-LINES:]]


class TextFormatter(logging.Formatter):
    """Has another formatter lay a record out, once all that is in it can be shown."""

    def __init__(self, layout: logging.Formatter) -> None:
        super().__init__()
        self._layout = layout

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of *record*; only the first begins at the margin."""
        shown = copy.copy(record)
        shown.msg, shown.args = _indented(_message_lines(record)), None
        shown.exc_text = shown.stack_info = None
        if record.exc_info:
            shown.exc_text = MARGIN + _indented(visible_lines(_exception(record)))
        if record.stack_info:
            shown.stack_info = MARGIN + _indented(visible_lines(record.stack_info))
        # Only the text of the exception is wanted from here on; it was made above.
        shown.exc_info = None
        return self._layout.format(shown)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, in ASCII: `time`, `level`, `logger`, `message`, `exception` if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as an object; `time` is of RFC 3339, in UTC, to the millisecond."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": visible(record.name),
            "message": "\n".join(_message_lines(record)),
        }
        if record.exc_info:
            line["exception"] = "\n".join(visible_lines(_exception(record)))
        if record.stack_info:
            line["stack"] = "\n".join(visible_lines(record.stack_info))
        return json.dumps(line)


class _Shown:
    """An argument of a log call, of whatever type, that prints nothing raw."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return visible(str(self._value))

    def __repr__(self) -> str:
        return visible(repr(self._value))


def _shown(value: Any) -> Any:
    """Return *value* as something that formats as it does, without line breaks and controls."""
    if isinstance(value, str):
        return visible(value)
    return value if isinstance(value, Number) or value is None else _Shown(value)


def _message_lines(record: logging.LogRecord) -> list[str]:
    """Return the message of *record* in the lines that its writer laid it out in."""
    try:
        return visible_lines(_message(record))
    except Exception as fault:  # noqa: BLE001  # a line that cannot be made must not cost the others
        return [
            f"{visible(str(record.msg))} (this message could not be laid out: {visible(repr(fault))})"
        ]


def _message(record: logging.LogRecord) -> str:
    args: Any = record.args
    message: Any = record.msg
    if not args or record.name in _LAID_OUT:
        return record.getMessage()
    if isinstance(args, tuple):
        args = tuple(_shown(value) for value in args)
    elif isinstance(args, dict):
        args = {name: _shown(value) for name, value in args.items()}
    return f"{message % args}"


def _exception(record: logging.LogRecord) -> str:
    # Not the text that another handler's formatter may have left on the record: this one is whole.
    assert record.exc_info
    return logging.Formatter().formatException(record.exc_info)


def _indented(lines: list[str]) -> str:
    return f"\n{MARGIN}".join(lines)
