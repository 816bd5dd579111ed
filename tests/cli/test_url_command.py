"""`amicrawl url`: what it prints, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from amicrawl.cli.url import url
from amicrawl.errors import UsageError


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(url)
    return app


def run(app: typer.Typer, *arguments: str, stdin: bytes = b"") -> str:
    result = CliRunner().invoke(app, arguments, input=stdin)
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def results(app: typer.Typer, *arguments: str, stdin: bytes = b"") -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(app, "--json", *arguments, stdin=stdin).splitlines()]


def test_a_result_has_the_fields_of_a_golden_line(app: typer.Typer) -> None:
    url = "HTTP://Example.COM:80/a/b/../c?utm_source=news&id=7#section"
    assert results(app, url) == [
        {
            "url": url,
            "grouping_mode": "registrable_domain",
            "ok": True,
            "canonical": "http://example.com/a/c?id=7",
            "host": "example.com",
            "grouping": "example.com",
            "hostkey": "0x2883ba7dc9aa3289",
            "pathkey": "0x930a3d88f7ba694c",
            "surt": "com,example)/a/c?id=7&utm_source=news",
        }
    ]


def test_a_form_that_is_not_its_own_form_is_shown_with_that(app: typer.Typer) -> None:
    once, rejected = results(app, "http://h/%2e", "http://../")
    assert (once["canonical"], once["canonical_of_canonical"]) == ("http://h/.", "http://h/")
    assert rejected["canonical_of_canonical"] == "(rejected)"


def test_a_refusal_comes_with_its_reason_and_the_extended_form(app: typer.Typer) -> None:
    refused, hopeless = results(app, "http://My_Host.example.com/", "mailto:x@y")
    assert (refused["ok"], refused["reason"]) == (
        False,
        "its host has a character that host names may not have",
    )
    assert "canonical" not in refused
    assert refused["extended"]["canonical"] == "http://my_host.example.com/"
    assert set(refused["extended"]) == {"canonical", "host", "grouping", "hostkey", "pathkey"}
    assert hopeless["reason"] == "its scheme is neither http nor https"
    assert "extended" not in hopeless


def test_a_link_is_read_on_its_page(app: typer.Typer) -> None:
    (found,) = results(app, "--base", "http://example.com/a/b", "../c")
    assert (found["base"], found["canonical"]) == ("http://example.com/a/b", "http://example.com/c")
    assert found["surt"] == "com,example)/c"


def test_urls_are_grouped_by_domain_or_by_host(app: typer.Typer) -> None:
    assert results(app, "http://a.example.com/")[0]["grouping"] == "example.com"
    (found,) = results(app, "--full-host", "http://a.example.com/")
    assert (found["grouping"], found["grouping_mode"]) == ("a.example.com", "full_host")


def test_a_hyphen_reads_one_url_a_line_whatever_its_octets(app: typer.Typer) -> None:
    first, second, third = results(app, "-", stdin=b"http://h/\xff\r\n\nhttp://\xc3\xa9.x")
    assert first["url_hex"] == b"http://h/\xff".hex()
    assert first["canonical"] == "http://h/%FF"
    assert (second["url"], second["ok"]) == ("", False)
    assert third["host"] == "xn--9ca.x"


def test_people_get_the_same_in_words(app: typer.Typer) -> None:
    shown = run(app, "http://a_b.example/%zz", "http://example.com/")
    assert shown.splitlines()[:4] == [
        "http://a_b.example/%zz",
        "  refused         a percent sign is not followed by two hexadecimal digits",
        "  by extension, because it can be fetched:",
        "  canonical form  http://a_b.example/%zz",
    ]
    assert "  path key        0x9034527ae0d2267a" in shown
    assert shown.endswith("  SURT            com,example)/\n")


def test_nothing_in_a_url_reaches_the_terminal_raw(app: typer.Typer) -> None:
    shown = run(app, "http://h/\x1b[2J\u202e", "filedesc:\x1b[2J")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_no_url_is_wrong_usage(app: typer.Typer) -> None:
    with pytest.raises(UsageError, match="No URL was given"):
        run(app)


def test_what_a_command_is_made_of_is_not_looked_through_for_cycles() -> None:
    """Python would do so at the end, which takes longer than many a command."""
    program = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        "from amicrawl.cli import app; app(['url', 'http://a.example/'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
