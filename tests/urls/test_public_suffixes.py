"""Registrable domains by the installed list, and by the rules of any list."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PublicSuffixList
from urls.vectors import CORPORA, SELECTION, lines

from amicrawl.urls import registrable_domain
from amicrawl.urls.host import canonical_host
from amicrawl.urls.suffix import Rules, installed_rules

LIST = CORPORA / "url" / "psl"
RULES = Rules.read(
    """
    // a comment, and an empty line

    com
    Uk
    co.uk and what stands behind a space
    *.ck
    !www.ck
    *.only.wild.com
    公司.cn
    """.splitlines()
)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("com", None),
        ("a.b.co.uk", "b.co.uk"),
        ("co.uk", None),
        ("a.uk", "a.uk"),
        ("foo.ck", None),
        ("a.foo.ck", "a.foo.ck"),
        ("www.ck", "www.ck"),
        ("a.www.ck", "www.ck"),
        ("ck", None),
        ("only.wild.com", "wild.com"),
        ("x.only.wild.com", None),
        ("y.x.only.wild.com", "y.x.only.wild.com"),
        ("a.xn--55qx5d.cn", "a.xn--55qx5d.cn"),
        ("a.b.unlisted", "b.unlisted"),
        ("unlisted", None),
    ],
)
def test_the_longest_rule_and_one_label_more(host: str, domain: str | None) -> None:
    assert RULES.registrable_domain(host) == domain


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("WWW.Example.co.uk.", "example.co.uk"),
        ("a.foo.github.io", "foo.github.io"),
        ("1.2.3.4", "1.2.3.4"),
        ("01.2.3.4", "3.4"),
        ("::1", "::1"),
        ("[::1]", "[::1]"),
        ("a..example.com", "a..example.com"),
        ("example.com..", "example.com."),
        ("", ""),
        (".", ""),
    ],
)
def test_a_host_without_registrable_domain_is_its_own_group(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


def test_the_selected_golden_groups_agree() -> None:
    for line in lines(SELECTION, "canon.jsonl", entry="grouping"):
        assert (line["id"], registrable_domain(line["host"])) == (line["id"], line["grouping"])


@given(
    labels=st.lists(
        st.sampled_from(["a", "co", "uk", "com", "github", "io", "ck", "www", "jp", "city", "kobe"])
    )
)
def test_the_installed_list_is_read_as_its_own_package_reads_it(labels: list[str]) -> None:
    host = ".".join(labels)
    # That package takes what stands behind the star of a rule for a suffix too, which no rule says.
    if labels and host not in installed_rules().wildcards:
        assert installed_rules().registrable_domain(host) == PACKAGE.privatesuffix(host)


PACKAGE = PublicSuffixList()


@pytest.mark.skipif(not LIST.exists(), reason="the list's own test cases are not at hand")
def test_the_cases_of_the_list_s_own_authors_hold() -> None:
    with (LIST / "public_suffix_list.dat").open(encoding="utf-8") as text:
        rules = Rules.read(text)
    checked = 0
    for line in (LIST / "test_psl.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        host = canonical_host(case["input"] or "")
        # A leading dot, and names that are none, are other people's question.
        if isinstance(host, str) and not host.startswith("."):
            expected = case["registrable_domain"]
            assert rules.registrable_domain(host) == (expected and canonical_host(expected)), case
            checked += 1
    assert checked > 60
