"""Host names are looked up by the resolver that the project has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guests.guest_runs import both, run
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path


def test_the_resolver_that_the_project_names_is_used(tmp_path: Path) -> None:
    settings = {"TWISTED_DNS_RESOLVER": "named.Resolver", "RETRY_TIMES": "0"}
    _, archived = both("named.py", lambda _: page(b"ok"), tmp_path, settings=settings)
    assert archived.scraped == {
        '{"address": "127.0.0.7", "said": "ok"}',
        '{"missed": "CannotResolveHostError"}',
    }
    assert archived.archived == {"/page"}


def test_the_log_says_how_an_address_that_is_refused_is_permitted(tmp_path: Path) -> None:
    settings = {"AMICRAWL_ALLOW_PRIVATE": "", "RETRY_TIMES": "0", "ROBOTSTXT_OBEY": "1"}
    ran = run("single_request.py", lambda _: page(b"ok"), tmp_path, has_line=True, settings=settings)
    assert ran.items == [{"missed": "DownloadFailedError"}]
    assert "permit it with AMICRAWL_ALLOW_PRIVATE, such as 127.0.0.0/8" in ran.log
