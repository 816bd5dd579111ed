"""Golden vectors of the software whose frontier files ours must agree with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.urls import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTOR_FILES = Path(__file__).parents[1] / "data" / "vectors"
CORPORA = VECTOR_FILES.parent / "corpora"


def lines(directory: Path, name: str, **wanted: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a vector file whose fields are as *wanted*."""
    with (directory / name).open(encoding="utf-8") as file:
        for line in file:
            fields = json.loads(line)
            if all(fields.get(field) == value for field, value in wanted.items()):
                yield fields


def text_in(fields: dict[str, Any], name: str) -> str | bytes:
    """Return a text that stands as hexadecimal where it is not UTF-8."""
    written = fields.get(f"{name}_hex")
    return fields[name] if written is None else bytes.fromhex(written)


def policy_in(fields: dict[str, Any]) -> Policy:
    """Return the policy of a line."""
    policy = dict(fields.get("policy", {}))
    allow, deny = policy.pop("query_allow", ()), policy.pop("query_deny", ())
    return Policy(query_allow=frozenset(allow), query_deny=frozenset(deny), **policy)
