"""Host names are looked up by the resolver that the project has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guests.guest_runs import both
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
