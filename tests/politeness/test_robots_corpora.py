"""Public test cases of robots.txt: what agrees, what differs, and why."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from urls.vectors import CORPORA

from amicrawl.politeness.robots import MOST_STEPS, RobotsRules, parse_robots, product_token

if TYPE_CHECKING:
    from collections.abc import Iterator

ROBOTS = CORPORA / "robots"

ENCODED = "a URL is percent-encoded before it is compared (RFC 9309, 2.2.2)"
WHOLE_LINES = "lines are not cut; only the file is (RFC 9309, 2.5)"
DIFFERENT = {
    "GoogleOnly_AcceptUserAgentUpToFirstSpace/2": "the first word of an agent is its name",
    "ID_Encoding/3": ENCODED,
    "ID_Encoding/5": ENCODED,
    "ID_Encoding/6": "escapes of unreserved characters are undone (RFC 9309, 2.2.2)",
    "GoogleOnly_LineTooLong/2": WHOLE_LINES,
    "GoogleOnly_LineTooLong/5": WHOLE_LINES,
    "testDirectiveTypos/4": "`useg-agent` is no usual way to misspell `user-agent`",
    "testSitemap/1": "a URL alone on its line is no sitemap",
}
"""The cases that come out otherwise."""


def rows(name: str) -> Iterator[dict[str, Any]]:
    with (ROBOTS / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def body_of(row: dict[str, Any]) -> bytes:
    written: str | None = row.get("robots_txt_base64")
    return row["robots_txt"].encode() if written is None else base64.b64decode(written)


def respond(rules: RobotsRules, row: dict[str, Any]) -> object:
    if "allowed" in row:
        return rules.allows(row["url"])
    return rules.crawl_delay if "crawl_delay_s" in row else len(rules.sitemaps)


def test_the_cases_of_two_other_parsers_come_out_the_same_but_for_what_is_told() -> None:
    different = set()
    compared = 0
    for row in rows("google-robotstxt/robots.jsonl"):
        compared += 1
        if parse_robots(body_of(row), agent=row["agent"]).allows(row["url"]) != row["allowed"]:
            different.add(row["name"])
    for row in rows("crawler-commons.expectations.jsonl"):
        compared += 1
        body = (ROBOTS / "crawler-commons" / row["file"]).read_bytes()
        wanted = next(row[fact] for fact in ("allowed", "crawl_delay_s", "sitemaps") if fact in row)
        if respond(parse_robots(body, agent=row["agent"]), row) != wanted:
            different.add(row["name"])
    assert compared == 145 + 91
    assert different == set(DIFFERENT)


def test_a_name_that_the_standard_permits_is_its_own_product_token() -> None:
    for row in rows("google-robotstxt/user_agents.jsonl"):
        if row["valid"]:
            assert product_token(row["agent"]) == row["agent"].lower().encode()


def test_as_many_rules_are_read_behind_each_line_end_and_byte_order_mark() -> None:
    for row in rows("google-robotstxt/parse_stats.jsonl"):
        body = body_of(row)
        if "sitemap" in row:
            assert parse_robots(body, agent="foo").sitemaps == (row["sitemap"],)
        elif "LinesNumbers" in row["name"]:
            assert not parse_robots(body, agent="bar").allows("http://h/x")
            assert parse_robots(body, agent="foo").allows("http://h/x")
        else:
            # The names of its two directives are known, or one is spoilt by a mark that is none.
            text = parse_robots(body, agent="foo").text
            assert ("Allow: /AnyValue" in text) == (row["valid_directives"] == 2), row["name"]


def test_patterns_are_spelled_as_there_but_for_reserved_characters() -> None:
    for row in rows("google-robotstxt/escape_pattern.jsonl"):
        rules = RobotsRules(((False, row["pattern"].encode()),))
        assert f"Disallow: {row['escaped'].replace(':', '%3A')}\n" in rules.text


def test_the_same_path_is_compared() -> None:
    """But for what is no absolute URL: none such is ever fetched."""
    compared = 0
    for row in rows("google-robotstxt/path_of_url.jsonl"):
        if row["url"].startswith(("http:", "//")):
            rules = RobotsRules(((False, row["path"].encode() + b"$"),))
            assert not rules.allows(row["url"]), row["url"]
            compared += 1
    assert compared == 7


def test_real_files_are_read_and_what_is_kept_of_them_says_the_same() -> None:
    compared = 0
    for row in rows("protego.manifest.jsonl"):
        body = (ROBOTS / "protego" / row["file"]).read_bytes()
        rules = parse_robots(body, agent="amicrawl")
        assert parse_robots(rules.text.encode(), agent="other") == rules
        # Their count is of lines that end in LF, and one sitemap may be named twice.
        if not {"cr_only", "bom"} & set(row["features"]):
            assert len(rules.sitemaps) <= row["sitemap_lines"], row["file"]
        assert rules.steps("/" + "x" * 200) < MOST_STEPS
        assert rules.allows("http://a.example/robots.txt")
        compared += 1
    assert compared == 300
