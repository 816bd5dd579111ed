r"""The log of a crawl: without a line per page, and in lines that nothing from the web can forge.

Every fetch has its row in the index; at 2,000 pages a second a log line for each would be most of the
work and all of the noise. What goes wrong in a spider is still logged, as text with escapes or as one
JSON object a line.

A URL, a header or the text of an exception may hold anything. Written raw, a line break begins a line
that looks like one of ours, an escape sequence moves the cursor of a terminal that shows the log,
a bidirectional override shows words in another order than they are in. So everything unprintable is
shown as Python would write it (`\x1b`, `\u202e`, `\n`), whether it is printed or decoded from JSON.

Line breaks of a message's own layout (a table of statistics) and those of a traceback stay in the text
format, but what follows them is indented: a line that begins at the margin is always one of ours.

Scrapy makes its log handler three times before a crawl begins, each time anew, and has no place for a
formatter. So `format_handlers` is called after each; what is logged between has Scrapy's own format.
"""

from __future__ import annotations

import copy
import json
import logging
from datetime import UTC, datetime
from functools import partial
from numbers import Number
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter
from scrapy.utils.log import get_scrapy_root_handler

from amicrawl.config import LogFormat
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

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


_visible = partial(harmless, limit=LIMIT)


def visible_lines(text: str) -> list[str]:
    """Return the lines of *text*, apart at line feeds only, each made visible; the last `LINES`."""
    return [_visible(line) for line in text.split("\n")[-LINES:]]


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
            "logger": _visible(record.name),
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
        return _visible(str(self._value))

    def __repr__(self) -> str:
        return _visible(repr(self._value))


def _shown(value: Any) -> Any:
    """Return *value* as something that formats as it does, without line breaks and controls."""
    if isinstance(value, str):
        return _visible(value)
    return value if isinstance(value, Number) or value is None else _Shown(value)


def _message_lines(record: logging.LogRecord) -> list[str]:
    """Return the message of *record* in the lines that its writer laid it out in."""
    try:
        return visible_lines(_message(record))
    except Exception as fault:  # noqa: BLE001  # a line that cannot be made must not cost the others
        return [
            f"{_visible(str(record.msg))} (this message could not be laid out: {_visible(repr(fault))})"
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


_GREETING = ("scrapy.utils.log", "scrapy.crawler", "asyncio")
"""The loggers that speak before any crawler is there: of versions and the like."""


def _nothing(_: logging.LogRecord) -> bool:
    """Let no record pass."""
    return False


def format_handlers(log_format: LogFormat) -> None:
    """Have what Scrapy's log handler writes pass *log_format*; nothing where it has none."""
    handler = get_scrapy_root_handler()
    if handler is None:
        return
    for name in _GREETING:
        logging.getLogger(name).removeFilter(_nothing)
    if log_format is LogFormat.JSON:
        handler.setFormatter(JsonFormatter())
    elif not isinstance(handler.formatter, TextFormatter):
        handler.setFormatter(TextFormatter(handler.formatter or logging.Formatter()))


def drop_early_lines() -> None:
    """Leave out the lines before `format_handlers` can be called: they are not JSON."""
    for name in _GREETING:
        # Not by its level, which Scrapy is about to set anew.
        logging.getLogger(name).addFilter(_nothing)


class QuietLogFormatter(LogFormatter):
    """Says nothing of pages that came, and says failed fetches at DEBUG: the index has both."""

    def crawled(  # type: ignore[override]  # Scrapy takes None for "no line", its signature does not
        self,
        request: Request,  # noqa: ARG002
        response: Response,  # noqa: ARG002
        spider: Spider,  # noqa: ARG002
    ) -> None:
        """Say nothing."""
        return

    def download_error(
        self, failure: Failure, request: Request, spider: Spider, errmsg: str | None = None
    ) -> LogFormatterResult:
        """Say it where DEBUG is wanted."""
        return {**super().download_error(failure, request, spider, errmsg), "level": logging.DEBUG}
