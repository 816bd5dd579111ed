"""What is wrong with a crawl file is said exactly: where, what, and what to do; all of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amicrawl.crawlfile import CrawlFileError, examine, read_crawl_file
from amicrawl.errors import ExitCode, InputError

if TYPE_CHECKING:
    from pathlib import Path


def faults_of(tmp_path: Path, text: str, *, name: str = "gov.toml") -> list[str]:
    """Return what is said of *text*, the directory left out."""
    path = tmp_path / name
    path.write_bytes(text.encode())
    return [str(fault).replace(f"{tmp_path}/", "") for fault in examine(path).faults]


WRONG = [
    ("[politeness]\ndealy = 1", 3, "unknown key dealy in [politeness]. Did you mean delay?"),
    (
        "[politeness]\nAMICRAWL_DELAY = 1",
        3,
        "unknown key AMICRAWL_DELAY in [politeness]. Did you mean delay?",
    ),
    (
        "[scope]\nper-hosts = 1",
        3,
        "unknown key per-hosts in [scope]. Did you mean per_host, which belongs into [politeness]?",
    ),
    ("[scope]\nzzzz = 1", 3, "unknown key zzzz in [scope]."),
    ("[limits]\nmax_urls = 1", 3, "max_urls stands in [limits] and belongs into [scope]."),
    ("stop_pages = 1", 2, "stop_pages stands outside of any table and belongs into [limits]."),
    (
        "[seeds]\nspider = 'site'",
        3,
        "spider stands in [seeds] and belongs to the top of the file, before any table.",
    ),
    ("[politness]\ndelay = 1", 2, "unknown table [politness]. Did you mean [politeness]?"),
    ("politeness = 1", 2, "politeness is a table. Write [politeness] on a line of its own, once."),
    ("[[limits]]", 2, "limits is a table. Write [limits] on a line of its own, once."),
    ("[politeness]\ndelay = 'fast'", 3, 'delay is "fast", and must be a number, 0 or more.'),
    ("[politeness]\ndelay = -1", 3, "delay is -1, and must be a number, 0 or more."),
    ("[politeness]\ndelay = inf", 3, "delay is inf, and must be a number, 0 or more."),
    ("[politeness]\nper_host = true", 3, "per_host is true, and must be an integer, 1 or more."),
    (
        "[politeness]\nrobots = 'obay'",
        3,
        'robots is "obay", and must be "obey", "obey-but-fetch-requisites" or "ignore".',
    ),
    (
        '[schedule]\nevery = "7d\\n"',
        3,
        'every is "7d\n", and must be a span of time such as "30m", "12h", "7d" or "4w".',
    ),
    (
        '[output]\nwarc_size = "64MiB\\n"',
        3,
        'warc_size is "64MiB\n", and must be bytes, 1024 or more, or a size such as "64MiB".',
    ),
    ("[request]\ntimeout = 0", 3, "timeout is 0, and must be a number greater than 0."),
    (
        "[output]\nwarc_size = '1 furlong'",
        3,
        'warc_size is "1 furlong", and must be bytes, 1024 or more, or a size such as "64MiB".',
    ),
    (
        "[output]\nwarc_size = '1KB'",
        3,
        'warc_size is "1KB", and must be bytes, 1024 or more, or a size such as "64MiB".',
    ),
    ("[scope]\ninclude = 'x'", 3, 'include is "x", and must be a list of strings.'),
    ("[scope]\nrequisites = 'no'", 3, 'requisites is "no", and must be true or false.'),
    (
        "[scope]\ninclude = [\n  'a',\n  '(b',\n]",
        5,
        "include: '(b' is not a regular expression: missing ), unterminated subpattern at position 0.",
    ),
    (
        "[scope]\nhosts = ['http://a.example/']",
        3,
        "hosts: 'http://a.example/' is not a host name: write it without scheme, port and path.",
    ),
    (
        "[scope]\nsurts = ['a.example']",
        3,
        (
            "surts: 'a.example' is not a SURT prefix: labels go from the right and end in "
            "commas, as in org,example, "
            "or org,example)/path."
        ),
    ),
    (
        "[ignores]\nignores = ['[']",
        3,
        "ignores: '[' is not a regular expression: unterminated character set at position 0.",
    ),
    (
        "[request]\nallow_private = ['10.0.0.0/99']",
        3,
        "allow_private: '10.0.0.0/99' does not appear to be an IPv4 or IPv6 network.",
    ),
    (
        "[request]\nproxy = 'http://ann:pw@proxy:1'",
        3,
        (
            "proxy has a user name or a password in it, which must not stand in a crawl "
            "file. Keep the whole URL "
            'elsewhere, and write proxy = "env:NAME" or "file:PATH".'
        ),
    ),
    (
        "[request]\nproxy = 'http://'",
        3,
        "proxy: The proxy is not an http, https, socks4, socks4a, socks5 or socks5h URL, nor host:port.",
    ),
    (
        "[request]\ncookies = 'sid=geheim'",
        3,
        (
            "cookies must not stand in a crawl file itself. Keep it elsewhere, and write cookies = "
            '"env:NAME" or "file:PATH".'
        ),
    ),
    (
        "[watch]\nwebhook_secret = 'geheim'",
        3,
        (
            "webhook_secret must not stand in a crawl file itself. Keep it elsewhere, and "
            "write webhook_secret = "
            '"env:NAME" or "file:PATH".'
        ),
    ),
    (
        "[host.'a.example']\nauth = 'ann:geheim'",
        3,
        (
            "auth must not stand in a crawl file itself. Keep it elsewhere, and write auth = "
            '"env:NAME" or '
            '"file:PATH".'
        ),
    ),
    (
        "[request.fields]\nAuthorization = 'Basic geheim'",
        2,
        'fields: Authorization is a secret. Use auth in [host."example.org"].',
    ),
    ("[request.fields]\ncookie = 'geheim'", 2, "fields: cookie is a secret. Use cookies in [request]."),
    ("[request.fields]\nUser-Agent = 'x'", 2, "fields: write user_agent in [request] instead."),
    ("[request.fields]\nHost = 'x'", 2, "fields: Host is composed for each request. Take it out."),
    (
        "[request.fields]\n'A B' = 'x'",
        2,
        "fields: 'A B' cannot be sent as it is: a name is one word, and a value one line.",
    ),
    (
        '[request.fields]\nA = "x\\r\\nB: y"',
        2,
        "fields: 'A' cannot be sent as it is: a name is one word, and a value one line.",
    ),
    (
        "[seeds]\nurl = ['https://a.example/', 'https://a.example/b c']",
        3,
        (
            "url: 'https://a.example/b c' has white space in it. Write %20 for a space, and several "
            "URLs as a list."
        ),
    ),
    (
        "[seeds]\ndepth = 100000",
        3,
        'depth is 100000, and must be "inf", "shallow" or a number up to 99999.',
    ),
    ("[seeds]\nshards = 10000000", 3, "shards is 10000000, and must be an integer from 1 to 9999999."),
    (
        "[seeds]\nprocesses = '129'",
        3,
        'processes is "129", and must be a number from "1" to "128", or "auto".',
    ),
    (
        "[host.'a.example']\ndelay = 1e300",
        3,
        "delay is 1e+300, and must be a number from 0 to 1000000000.",
    ),
    (
        '[seeds]\nfile = "a\\u0000b"',
        3,
        "file has a NUL character in it, which no name and no message can have.",
    ),
    (
        'extends = ["a\\u0000b"]',
        2,
        "extends has a NUL character in it, which no name and no message can have.",
    ),
    (
        '[request]\ncookies = "file:a\\u0000b"',
        3,
        "cookies has a NUL character in it, which no name and no message can have.",
    ),
    ("[request]\nuser_agent = 'é'", 3, "user_agent: it must be one line of ASCII."),
    (
        "[watch]\nwebhooks = ['https://ann:pw@hook.example/']",
        3,
        "webhooks: the URL contains a user name or a password, which do not belong in a crawl file.",
    ),
    (
        "[host.a.example]\ndelay = 1",
        2,
        'a.example is read as two names. Put a host name into quotes: [host."a.example"].',
    ),
    (
        "[host.www.a.example]\ndelay = 1",
        2,
        'www.a is read as two names. Put a host name into quotes: [host."www.a.example"].',
    ),
    ("[host]\ndelay = 1", 3, 'delay belongs to one host. Write it below [host."example.org"].'),
    (
        "[host.'http://a.example/']\ndelay = 1",
        3,
        '[host."http://a.example/"]: no host name. Write it without scheme, port and path.',
    ),
    ("[host.'a.example']\ndely = 1", 3, "unknown key dely in [host]. Did you mean delay?"),
    (
        "[host.'a.example']\nallow_plain = true",
        3,
        "allow_plain says how auth is sent, and there is no auth for this host.",
    ),
    (
        "[schedule]\nevery = '1 week'",
        3,
        'every is "1 week", and must be a span of time such as "30m", "12h", "7d" or "4w".',
    ),
    ("[schedule]\nrecrawl = true", 3, 'recrawl needs an interval. Write every = "7d" beside it.'),
    (
        "[schedule]\nevery = '1d'\nrecrawl = true\n[output]\nrun_id = '%Y'",
        4,
        "recrawl continues in one directory, and run_id names a new one each time. Take one out.",
    ),
    (
        "[output]\nrun_id = '%x'",
        3,
        "run_id: a code in it is not one of strftime, or gives an invalid directory name.",
    ),
    (
        "[watch]\nmetrics = ':99999'",
        3,
        (
            "metrics: it must be an address and a port, as in 127.0.0.1:9410 (0.0.0.0:9410 for all that "
            "this machine has; port 0 for any that is free)."
        ),
    ),
    (
        "[request]\ndns_servers = ['192.0.2.53', 'dns.example']",
        3,
        (
            "dns_servers: 'dns.example' is not an address. Write 192.0.2.53 or 192.0.2.53:5353, or "
            "`system` alone for the system's resolver."
        ),
    ),
    (
        "[scope]\nhosts = ['ann@a.example']",
        3,
        "hosts: 'ann@a.example' is not a host name: write it without scheme, port and path.",
    ),
    (
        "[scope]\ndomains = ['a.example',\n'a.example#x']",
        4,
        "domains: 'a.example#x' is not a host name: write it without scheme, port and path.",
    ),
    (
        "[seeds]\nfile = 'ftp://a.example/seeds.txt'",
        3,
        (
            "file: 'ftp://a.example/seeds.txt' cannot be requested: its scheme is neither http nor "
            "https. Copy the list to this machine and write its path."
        ),
    ),
    (
        "[seeds]\nfile = 'file:///seeds.txt'",
        3,
        (
            "file: 'file:///seeds.txt' cannot be requested: its scheme is neither http nor https. "
            "Copy the list to this machine and write its path."
        ),
    ),
    (
        "spider = 'site'\n[seeds]\nfile = 'https://a.example/seeds.txt'",
        4,
        (
            "file is an address, and the spider site reads its start URLs from a path. Write url in its "
            "place, and sitemaps = true below [scope] to have the sitemaps of the site read."
        ),
    ),
    (
        "[politeness]\ninflight_max = 3\ninflight_min = 5",
        4,
        "AMICRAWL_INFLIGHT_MIN (5), _START (3) and _MAX (3) must not descend.",
    ),
]


@pytest.mark.parametrize(("text", "line", "sentence"), WRONG, ids=[text for text, _, _ in WRONG])
def test_a_fault_is_said_with_its_line(tmp_path: Path, text: str, line: int, sentence: str) -> None:
    said = faults_of(tmp_path, f"public = false\n{text}\n")
    assert f"gov.toml, line {line}: {sentence}" in said, "\n".join(said)
    assert "geheim" not in "".join(said)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = "public = false\n[politeness]\ndealy = 1\nrobots = 'no'\n[scope]\nexclude = ['(', 'a', ')']\n"
    said = faults_of(tmp_path, text)
    assert [line.partition(": ")[0] for line in said] == [
        "gov.toml", "gov.toml, line 3", "gov.toml, line 4", "gov.toml, line 6", "gov.toml, line 6",
    ]  # fmt: skip
    assert said[0] == 'gov.toml: no seeds. Write file = "seeds.jsonl" below [seeds].'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = \n", "line 1: Invalid value (column "),
        ("\n[a\n", "line 2: Expected ']' at the end of a table declaration (column "),
        ("a = 1\na = 2\n", "line 2: Cannot overwrite a value (column "),
        ("a = '''\n\n", "line 2: Expected \"'''\", and the file ends here."),
    ],
)
def test_a_text_that_is_no_toml_is_told_by_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    (said,) = faults_of(tmp_path, text)
    assert said.startswith(f"gov.toml, {sentence}")


def test_bytes_that_are_not_utf_8_are_told_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    (fault,) = examine(tmp_path / "x.toml").faults
    assert (fault.line, fault.sentence) == (2, "The line is not UTF-8. Save the file as UTF-8.")


def test_a_byte_order_mark_as_editors_write_it_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("public = false\n[seeds]\nurl = 'http://a.example/'\n", encoding="utf-8-sig")
    assert not examine(path).faults
    path.write_text("publci = false\n", encoding="utf-8-sig")
    assert [fault.line for fault in examine(path).faults if "publci" in fault.sentence] == [1]


def test_brackets_without_end_are_a_fault_and_no_crash(tmp_path: Path) -> None:
    assert len(faults_of(tmp_path, f"a = {'[' * 50_000}")) == 1


@pytest.mark.parametrize(
    ("operator", "is_good"),
    [
        ("A Library, crawl@library.example", True),
        ("https://library.example/crawl", True),
        ("A Library", False),
        ("crawl@library", False),
    ],
)
def test_a_public_crawl_says_whom_to_reach(tmp_path: Path, operator: str, *, is_good: bool) -> None:
    said = faults_of(tmp_path, f"[seeds]\nfile = 's'\n[request]\noperator = '{operator}'\n")
    advice = (
        'Servers must be able to reach you: write operator = "Name, name@example.org" below [request], '
        "or public = false at the top if all hosts are your own."
    )
    wrong = f"gov.toml, line 4: operator has no e-mail address and no URL in it. {advice}"
    assert said == ([] if is_good else [wrong])
    assert faults_of(tmp_path, "[seeds]\nfile = 's'\n") == [f"gov.toml: no operator. {advice}"]


def test_a_crawl_of_ones_own_hosts_needs_no_operator(tmp_path: Path) -> None:
    assert faults_of(tmp_path, "public = false\n[seeds]\nfile = 's'\n") == []


def test_an_argument_of_the_other_spider_is_a_fault(tmp_path: Path) -> None:
    text = "public = false\nspider = 'seeds'\n[seeds]\nfile = 's'\ndepth = 'inf'\n"
    assert faults_of(tmp_path, text) == [
        "gov.toml, line 5: depth is for the spider site, and this is a crawl of the spider seeds."
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# " + "." * 120 + "\n[scope]\nhosts = ['a.example']",
        "[scope]\nhosts = [\n" + ", ".join(f"'www.a{n}.example'" for n in range(60)) + "\n]",
        "[request.fields]\nA = '" + "a..b " * 60 + "'",
    ],
)
def test_many_dots_in_a_line_are_no_long_key(tmp_path: Path, text: str) -> None:
    assert faults_of(tmp_path, f"public = false\n{text}\n[seeds]\nfile = 's'\n") == []


@pytest.mark.parametrize(
    "key", ["a." * 100 + "b = 1", "[a" + " . 'b.c'" * 100 + "]", "'\"'." * 100 + "b = 1"]
)
def test_a_key_of_too_many_names_is_refused_at_its_line(tmp_path: Path, key: str) -> None:
    (said,) = faults_of(tmp_path, f"public = false\n{key}\n")
    assert said == "gov.toml, line 2: A key has more than 100 names (column 1)."


def test_auth_is_found_in_whatever_spelling_its_host_is_named(tmp_path: Path) -> None:
    text = "[host.'A.example.']\nauth = 'env:A'\n[host.'a.example']\nauth_port = 8443\n"
    assert faults_of(tmp_path, f"public = false\n[seeds]\nfile = 's'\n{text}") == []


def test_an_at_sign_behind_the_host_is_no_password(tmp_path: Path) -> None:
    assert faults_of(tmp_path, "public = false\n[seeds]\nurl = 'https://a.example?to=b@c'\n") == []


def test_shards_count_from_0(tmp_path: Path) -> None:
    text = "public = false\n[seeds]\nfile = 's'\nshards = 4\nshard = 4\n"
    assert faults_of(tmp_path, text) == [
        "gov.toml, line 5: shard must be less than shards: the first of four is 0 and the last 3."
    ]


def test_an_unknown_ignore_set_is_reported_with_those_there_are(tmp_path: Path) -> None:
    (said,) = faults_of(
        tmp_path, "public = false\n[seeds]\nfile = 's'\n[ignores]\nignore_sets = ['globl']\n"
    )
    assert said.startswith("gov.toml, line 5: ignore_sets: there is no set 'globl'. There are ")
    assert "global" in said


def test_faults_end_with_the_code_for_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "gov.toml").write_text("spider = 1\nx = 2\n")
    with pytest.raises(CrawlFileError) as caught:
        read_crawl_file(tmp_path / "gov.toml")
    assert caught.value.exit_code is ExitCode.USAGE
    assert str(caught.value).count("\n") == 2
    assert [fault.line for fault in caught.value.faults] == [None, 1, 2]


@pytest.mark.parametrize("path", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_crawl_file(tmp_path / path)


def test_what_is_only_missing_here_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "open").write_text("x")
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "gov.toml").write_text(
        "public = false\n[seeds]\nfile = 'none.txt'\n[request]\ncookies = 'file:open'\n"
        "proxy = 'env:AMICRAWL_TEST_UNSET'\n"
    )
    examined = examine(tmp_path / "gov.toml")
    assert examined.faults == ()
    assert [(note.line, note.sentence.replace(f"{tmp_path}/", "")) for note in examined.notes] == [
        (3, "the seed list none.txt does not exist, or cannot be read."),
        (5, "cookies: open holds a secret, and others may read or change it. Run: chmod o-rw open"),
        (6, "proxy: the environment variable AMICRAWL_TEST_UNSET is not set."),
    ]
