"""What a robots.txt says: RFC 9309 by example, and files that are meant to do harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness.robots import (
    MOST_PARSED,
    MOST_RULES,
    MOST_SITEMAPS,
    MOST_STEPS,
    RobotsRules,
    parse_robots,
    product_token,
)


def parsed(text: str, *, agent: str = "amicrawl") -> RobotsRules:
    return parse_robots(text.encode(), agent=agent)


def allowed(text: str, path: str, *, agent: str = "amicrawl") -> bool:
    return parsed(text, agent=agent).allows(f"http://a.example{path}")


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("amicrawl", b"amicrawl"),
        ("Amicrawl/1.0 (+https://a.example/)", b"amicrawl"),
        ("archive.org_bot", b"archive.org_bot"),
        ("Mozilla/5.0 (compatible; FooBot/2.1; +http://a.example)", b"foobot"),
        ("Mozilla/5.0 (X11; Linux)", b"mozilla"),
        ("", b""),
        ("\ud800/1", b"\xef\xbf\xbd"),
    ],
)
def test_a_crawler_is_called_by_its_first_product(agent: str, token: bytes) -> None:
    assert product_token(agent) == token


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/example/page.html", False),
        ("/other/disallowed.gif", False),
        ("/publications/page.html", True),
        ("/publications/allowed.gif", True),
        ("/", True),
    ],
)
def test_the_longest_match_decides(path: str, expected: bool) -> None:
    rules = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n"
    assert allowed(rules, path) is expected


def test_allow_wins_between_rules_of_one_length_in_either_order() -> None:
    assert allowed("User-agent: *\nAllow: /a\nDisallow: /a\n", "/a")
    assert allowed("User-agent: *\nDisallow: /a\nAllow: /a\n", "/a")


def test_groups_of_one_name_are_one_group() -> None:
    rules = "User-agent: amicrawl\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\n"
    rules += "User-agent: AmiCrawl\nDisallow: /b\n"
    assert [allowed(rules, path) for path in ("/a", "/b", "/c")] == [False, False, True]
    assert [allowed(rules, path, agent="other") for path in ("/a", "/c")] == [False, False]


def test_a_group_of_ours_without_rules_allows_all() -> None:
    assert allowed("User-agent: *\nDisallow: /\n\nUser-agent: amicrawl\nDisallow:\n", "/a")
    assert allowed("User-agent: *\nDisallow: /\n\nUser-agent: amicrawl\n", "/a")


def test_a_name_is_matched_whole_and_whatever_its_case() -> None:
    assert allowed("User-agent: ami\nDisallow: /\n", "/a")
    assert allowed("User-agent: amicrawler\nDisallow: /\n", "/a")
    assert not allowed("User-agent: AMICRAWL\nDisallow: /\n", "/a")
    assert not allowed("User-agent: amicrawl/1.0\nDisallow: /\n", "/a")
    assert not allowed("User-agent: amicrawl*\nDisallow: /\n", "/a")


def test_no_name_matches_a_group_without_one() -> None:
    assert allowed("User-agent:\nDisallow: /\n", "/a", agent="")


def test_only_rules_end_the_names_of_a_group() -> None:
    rules = (
        "User-agent: amicrawl\nSitemap: /s\nCrawl-delay: 3\nHost: x\nUser-agent: other\nDisallow: /\n"
    )
    assert not allowed(rules, "/a")
    assert parsed(rules).crawl_delay == 3
    # The delay was wished for before the other was named.
    assert parsed(rules, agent="other").crawl_delay is None


def test_rules_before_any_group_say_nothing() -> None:
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /b\n", "/a")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_every_line_end_and_a_byte_order_mark_are_read(end: str, mark: bytes) -> None:
    body = mark + end.join(["User-agent: *", "Disallow: /a", "Disallow: /b"]).encode()
    rules = parse_robots(body, agent="amicrawl")
    assert [rules.allows(f"http://h/{path}") for path in "abc"] == [False, False, True]


def test_other_line_separators_of_unicode_are_no_line_ends() -> None:
    assert allowed("User-agent: *\nDisallow: /a\u2028Disallow: /b\x0bDisallow: /b\n", "/b")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_by_its_byte_order_mark(encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    body = f"{mark}User-agent: *\nDisallow: /ä\n".encode(encoding)
    assert not parse_robots(body, agent="amicrawl").allows("http://h/%C3%A4")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/a%3Cd.html", "/a%3cd.html", True),
        ("/%7ejoe/", "/~joe/", True),
        ("/~joe/", "/%7Ejoe/", True),
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http%3A//foo.bar", True),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%E3%83%84", "/foo/bar/ツ", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/a%2fb", "/a%2Fb", True),
        # A slash that is escaped parts no path, for servers either.
        ("/a%2Fb", "/a/b", False),
        ("/a%252Fb", "/a%252fb", False),
        ("/a%252Fb", "/a%2fb", False),
        ("/caf%E9", "/caf%E8", False),
        ("/caf%E9", "/caf%e9", True),
        ("/a%", "/a%zz", True),
        ("/a b", "/a%20b", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", False),
        ("/path/foo-%24", "/path/foo-$x", True),
        ("/a$b", "/a$b", True),
        ("/a$", "/a$b", False),
        ("/a$$", "/a$", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("$", "/", False),
        ("/*.php$", "/x.php?y", False),
        ("/*.php$", "/x.php", True),
        ("/***", "/", True),
        ("*$", "/x", True),
        ("/A", "/a", False),
        ("a", "/a", False),
        ("http://a.example/a", "/a", False),
        ("//a", "//a/b", True),
        ("/a", "/a#/b", True),
        ("/b", "/a#/b", False),
        ("/?", "?x", True),
        ("/", "", True),
        ("/a:b", "/a:b", True),
        ("/a~7Eb", "/a~b", False),
    ],
)
def test_patterns_and_urls_are_compared_by_octets(pattern: str, path: str, matches: bool) -> None:
    assert allowed(f"User-agent: *\nDisallow: {pattern}\n", path) is not matches


def test_octets_that_are_not_utf_8_are_compared_too() -> None:
    rules = parse_robots(b"User-agent: *\nDisallow: /caf\xe9\n", agent="amicrawl")
    assert not rules.allows("http://h/caf%E9/x")
    assert not rules.allows(b"http://h/caf\xe9")
    assert not rules.allows("http://h/caf\udce9")
    assert rules.allows("http://h/café")


def test_the_file_itself_is_always_allowed() -> None:
    rules = "User-agent: *\nDisallow: /\n"
    assert allowed(rules, "/robots.txt")
    assert allowed(rules, "/robots.txt?x")
    assert not allowed(rules, "/robots.txt/x")
    assert not allowed(rules, "/a/robots.txt")


@pytest.mark.parametrize(
    "rule", ["disallow : /a", "DISALLOW:/a # why", "disallow /a", "Dissalow: /a", "\tDisallow:\t/a"]
)
@pytest.mark.parametrize("name", ["user-agent: *", "useragent:*", "User agent *", "USER-AGENT : *#x"])
def test_usual_misspellings_are_read(name: str, rule: str) -> None:
    assert not allowed(f"{name}\n{rule}\n", "/a")


def test_a_sentence_is_no_rule() -> None:
    assert allowed("User-agent: *\nDisallow /a and all that\n", "/a")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("10", 10.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("0", 0.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("5s", None),
        ("", None),
        ("9" * 18, 1e6),
        ("9" * 5000, None),
        ("٣", None),
    ],
)
def test_a_crawl_delay_is_a_plain_number_of_seconds(written: str, seconds: float | None) -> None:
    assert parsed(f"User-agent: *\nCrawl-delay: {written}\n").crawl_delay == seconds


def test_the_last_crawl_delay_of_a_group_holds_and_a_malformed_one_does_not() -> None:
    rules = (
        "User-agent: *\nCrawl-delay: 1\nDisallow: /x\nUser-agent: *\nCrawl-delay: 2\nCrawl-delay: soon\n"
    )
    assert parsed(rules).crawl_delay == 2


def test_sitemaps_are_found_anywhere_once_and_as_written() -> None:
    text = "Sitemap: http://a.example/S.xml\nUser-agent: x\nSITEMAP: /s\nDisallow: /\n"
    text += "sitemap: /s\nSitemap:\n"
    assert parsed(text).sitemaps == ("http://a.example/S.xml", "/s")
    assert (
        len(parsed("".join(f"Sitemap: /{n}\n" for n in range(MOST_SITEMAPS + 1))).sitemaps)
        == MOST_SITEMAPS
    )


def test_only_the_first_500_kib_are_read_and_no_part_of_a_line() -> None:
    head = b"User-agent: *\n"
    cut = (
        head
        + b"#" * (MOST_PARSED - len(head) - len(b"\nDisallow: /"))
        + b"\nDisallow: /private\nDisallow: /b\n"
    )
    assert cut[:MOST_PARSED].endswith(b"\nDisallow: /")
    rules = parse_robots(cut, agent="amicrawl")
    assert rules.allows("http://h/a")
    assert rules.allows("http://h/b")
    assert parse_robots(head + b"Disallow: /" + b"x" * 10_000_000, agent="a") == RobotsRules()


def test_what_one_url_costs_is_bounded_whatever_the_file() -> None:
    many = "".join(f"Disallow: /*{'a' * 90}b{n}\n" for n in range(4500))
    rules = parsed(f"User-agent: *\n{many}")
    short, long = "/a", "/" + "a" * 2000
    assert rules.steps(short) <= MOST_STEPS < rules.steps(long)
    assert rules.allows("http://h" + short)
    assert not rules.allows("http://h" + long)


def test_a_pattern_of_nothing_but_wildcards_costs_no_more_than_its_length() -> None:
    rules = parsed(f"User-agent: *\nDisallow: /{'*a' * 20_000}b$\n")
    path = "/" + "a" * 1000
    assert rules.steps(path) <= 41_000 * 1001
    assert rules.allows("http://h" + path)


def test_names_times_rules_are_not_multiplied() -> None:
    """A rule belongs to every name of its group; only ours is kept."""
    names = "".join(f"User-agent: n{n}\n" for n in range(10_000))
    rules = "".join(f"Disallow: /{n}\n" for n in range(10_000))
    assert parsed(names + rules) == RobotsRules()
    kept = parsed(f"{names}User-agent: amicrawl\n{rules}")
    assert kept.steps("/") == 10_000
    assert kept.weight < 20 << 20


def test_rules_are_bounded_in_number_and_one_twice_is_one() -> None:
    rules = "User-agent: *\n" + "".join(f"Allow:/{n}\n" for n in range(MOST_RULES + 100))
    assert parsed(rules).steps("/") == MOST_RULES
    assert parsed("User-agent: *\n" + "Allow: /%61\nAllow: /a\n" * 1000).steps("/") == 1


def test_folded_rules_say_the_same() -> None:
    rules = parsed("User-agent: *\nDisallow: /a\n")
    assert not rules.allows("http://h/a")
    rules.fold()
    assert not rules.allows("http://h/a")
    assert rules == parsed("User-agent: amicrawl\nDisallow: /%61\n")


PIECES = st.sampled_from(
    b"User-agent: *|user-agent: amicrawl|Disallow: |Allow: |Sitemap: |Crawl-delay: 1|/|*|$|%|%4|%2f|a|~"
    b"|:|#| |\n|\r|\x00|\xff|\xed\xa0\x80".split(b"|")
)
BODIES = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=40).map(b"".join))
URLS = st.one_of(
    st.text(st.characters(), max_size=60),
    st.text(st.characters(), max_size=60).map("http://a.example/".__add__),
    st.binary(max_size=60),
    st.lists(PIECES, max_size=20).map(lambda pieces: b"http://h/" + b"".join(pieces)),
)


@given(BODIES, URLS)
def test_nothing_raises_on_any_file_or_url(body: bytes, url: str | bytes) -> None:
    rules = parse_robots(body, agent="amicrawl")
    assert isinstance(rules.allows(url), bool)
    assert rules.crawl_delay is None or 0 <= rules.crawl_delay <= 1e6
    assert rules.weight < 800 * (len(body) + 1)


@given(BODIES, URLS)
def test_what_is_kept_of_a_file_says_the_same(body: bytes, url: str | bytes) -> None:
    rules = parse_robots(body, agent="amicrawl")
    again = parse_robots(rules.text.encode(), agent="another")
    assert again == rules
    assert again.allows(url) is rules.allows(url)


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_any_path_is_forbidden_by_a_rule_with_the_same_path(path: str, rest: str) -> None:
    """But for what has a meaning in a rule, and the ends of its line."""
    written = "".join(c for c in path if c not in "#*$\r\n").strip()
    target = written.encode("utf-8", "replace")
    rules = parse_robots(b"User-agent: *\nDisallow: /" + target + b"\n", agent="amicrawl")
    followed = rest.encode("utf-8", "replace")
    # White space at the end is no part of a rule, and an escape must not be completed from behind.
    if target == target.strip() and not target[-2:].count(b"%"):
        url = b"http://a.example/" + target + followed
        assert not rules.allows(url) or url == b"http://a.example/robots.txt"
