"""Registrable domains by the installed list."""

from __future__ import annotations

import json

import pytest
from urls.vectors import CORPORA

from amicrawl.urls import registrable_domain
from amicrawl.urls.host import canonical_host

LIST = CORPORA / "url" / "psl"


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
        ("com", "com"),
        ("co.uk", "co.uk"),
        ("a.b.co.uk", "b.co.uk"),
        ("foo.ck", "foo.ck"),
        ("b.a.foo.ck", "a.foo.ck"),
        ("a.www.ck", "www.ck"),
        ("a.xn--55qx5d.cn", "a.xn--55qx5d.cn"),
        ("a.b.unlisted", "b.unlisted"),
        ("compute.amazonaws.com", "amazonaws.com"),
        ("x.compute.amazonaws.com", "x.compute.amazonaws.com"),
        ("a.x.compute.amazonaws.com", "a.x.compute.amazonaws.com"),
    ],
)
def test_a_host_without_registrable_domain_is_its_own_group(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


def test_the_cases_of_the_list_s_own_authors_hold() -> None:
    checked = 0
    for line in (LIST / "test_psl.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        host = canonical_host(case["input"] or "")
        # A leading dot, and names that are not host names, are outside of what is tested here.
        if isinstance(host, str) and host and not host.startswith("."):
            expected = case["registrable_domain"]
            found = registrable_domain(host)
            assert found == (canonical_host(expected) if expected else host), case
            checked += 1
    assert checked > 60
