"""The log: nothing that a server says begins a line, moves a cursor or turns text around."""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
import warm_processes
from hypothesis import given
from hypothesis import strategies as st
from loopback import PROJECT, QUICK, RawServer, environment, page

from amicrawl.crawl.watching.logs import LINES, MARGIN, JsonFormatter, TextFormatter

if TYPE_CHECKING:
    from pathlib import Path

FORGED = "2026-01-01 00:00:00 [amicrawl] ERROR: forged"
EVIL = f"\x1b]0;owned\x07\x1b[2J\r\n{FORGED}\r\n\u202egpj.exe\u202c\x85\u2028\x9b31m\x7f"
LAYOUT = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"


def record(message: str, *args: Any, name: str = "amicrawl.crawl", **more: Any) -> logging.LogRecord:
    made = logging.LogRecord(name, logging.WARNING, __file__, 1, message, args, None)
    made.__dict__.update(more)
    return made


def text(made: logging.LogRecord) -> str:
    return TextFormatter(logging.Formatter(LAYOUT)).format(made)


def as_json(made: logging.LogRecord) -> dict[str, str]:
    line = JsonFormatter().format(made)
    assert line.isascii()
    assert line.isprintable(), "one line, whatever is in it"
    read: dict[str, str] = json.loads(line)
    return read


def raised(message: str) -> dict[str, Any]:
    try:
        raise ValueError(message)
    except ValueError:
        return {"exc_info": sys.exc_info()}


@given(st.text(), st.text())
def test_an_argument_never_begins_a_line(argument: str, in_mapping: str) -> None:
    assert len(text(record("<%s>", argument)).split("\n")) == 1
    assert len(text(record("<%r>", ValueError(argument))).split("\n")) == 1
    assert text(record("%(it)s", {"it": in_mapping})).isprintable()


def test_what_a_writer_laid_out_in_lines_stays_so_and_only_the_first_is_at_the_margin() -> None:
    shown = text(record("counts:\n{'a': 1,\n 'b': 2}"))
    first, *others = shown.split("\n")
    assert first.endswith("[amicrawl.crawl] WARNING: counts:")
    assert others == [f"{MARGIN}{{'a': 1,", f"{MARGIN} 'b': 2}}"]


def test_an_exception_keeps_its_lines_and_forges_none() -> None:
    shown = text(record("it broke", **raised(EVIL)))
    first, *others = shown.split("\n")
    assert first.endswith("it broke")
    assert all(line.startswith(MARGIN) and line.isprintable() for line in others)
    assert "ValueError: \\x1b]0;owned" in shown
    told = as_json(record("it broke", **raised(EVIL)))
    assert all(line.isprintable() for line in told["exception"].split("\n"))
    assert told["exception"].startswith("Traceback (most recent call last):\n")


def test_an_endless_exception_is_cut_to_its_end() -> None:
    shown = text(record("it broke", **raised("x\n" * 10_000 + "the end")))
    assert len(shown.split("\n")) == LINES + 1
    assert shown.endswith("the end")


def test_numbers_and_objects_format_as_they_would_have() -> None:
    assert text(record("%d %5.1f %s %r", 7, 2.25, True, "a")).endswith("7   2.2 True 'a'")
    assert text(record("100 %")).endswith("100 %")


def test_arguments_that_do_not_fit_cost_no_line() -> None:
    shown = text(record("%d pages of %s", "many"))
    assert "%d pages of %s" in shown
    assert as_json(record("%d", EVIL))["message"].isprintable()


def test_the_record_is_left_as_it_was_for_other_handlers() -> None:
    made = record("at %s", EVIL, **raised("x"))
    text(made)
    JsonFormatter().format(made)
    assert made.args == (EVIL,)
    assert made.exc_text is None
    assert made.exc_info


def test_a_json_line_has_time_level_logger_and_message() -> None:
    told = as_json(record("at %s", "é" + EVIL, created=1700000000.1239))
    assert told["time"] == "2023-11-14T22:13:20.123Z"
    assert (told["level"], told["logger"]) == ("WARNING", "amicrawl.crawl")
    assert told["message"].startswith(r"at é\x1b]0;owned")
    assert told["message"].isprintable(), "harmless also for who decodes it and prints it"


SPIDER = """
import scrapy


class Loud(scrapy.Spider):
    name = "loud"
    reads_responses = True  # one of ours: the log of a guest is Scrapy's

    async def start(self):
        for path in ("/", "/%1b%0d%0a\\u202e", "/moved", "/\\x1b[2J"):
            yield scrapy.Request(self.base + path, dont_filter=True)

    def parse(self, response):
        title = response.css("title::text").get()
        self.logger.warning("%s has the title %s and %s", response.url, title, response.headers)
        self.logger.error(f"again {title}")
        raise ValueError(title)
"""


def respond(head: bytes) -> bytes:
    fields = ["Content-Type: text/html; charset=utf-8", "X-Evil: \x1b[2J\x0b\x7f" + "é"]
    if head.startswith(b"GET /moved"):
        target = "/\x1b[31m\u202e%0d%0a" + FORGED.replace(" ", "%20")
        moved = page(b"", *fields, "Location: @", status="302 \x1b[1mFound")
        return moved.replace(b"@", target.encode())
    body = f"<html><title>{EVIL}</title></html>".encode("utf-8", "surrogatepass")
    return page(body, *fields, status="200 \x1b[2J").replace("é".encode(), b"\x9b")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_nothing_that_a_server_says_forges_a_line_of_the_log(tmp_path: Path, log_format: str) -> None:
    spider = tmp_path / "loud.py"
    spider.write_text(SPIDER)
    log = tmp_path / "crawl.log"
    settings = {
        **QUICK,
        "AMICRAWL_OUT": str(tmp_path / "out"),
        "AMICRAWL_LOG_FORMAT": log_format,
        "LOG_LEVEL": "DEBUG",
        "LOG_FILE": str(log),
    }
    with RawServer(respond) as server:
        line = [sys.executable, "-m", "scrapy", "runspider", str(spider), "-a", f"base={server.url}"]
        for name, value in settings.items():
            line += ["-s", f"{name}={value}"]
        done = warm_processes.run(
            line, cwd=PROJECT, env=environment(), capture_output=True, timeout=60, check=False
        )
        assert len(server.requests) == 5, done.stderr
    lines = log.read_bytes().decode().split("\n")
    assert lines.pop() == ""
    said = "".join(lines)
    assert said.isprintable()
    assert "owned" in said, "what was attacked with did reach the log"
    assert "ValueError" in said
    if log_format == "json":
        for one in lines:
            told = json.loads(one)
            assert told.keys() >= {"time", "level", "logger", "message"}
            assert "".join(told.values()).replace("\n", "").isprintable()
    else:
        at_margin = [one for one in lines if not one.startswith(MARGIN)]
        began = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[[a-z._]+\] [A-Z]+: ")
        # What Scrapy says before the add-on is called: its versions, laid out in lines.
        greeting = next(n for n, one in enumerate(at_margin) if "Enabled addons" in one)
        assert [one for one in at_margin[greeting:] if not began.match(one)] == []
        assert not any(one.startswith(FORGED) for one in lines)
