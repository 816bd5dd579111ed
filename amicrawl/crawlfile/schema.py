"""The JSON Schema of crawl files, made from their keys. Pure.

`crawl-file.schema.json` beside this module is what `crawl_file_schema` returns, for editors that
complete and check while one writes; `amicrawl check` says more: it also looks at what values mean.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from amicrawl.crawlfile.keys import HOST, HOST_KEYS, KEYS, TABLES, description_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.crawlfile.keys import Key

FILE_NAME = "crawl-file.schema.json"


def crawl_file_schema() -> dict[str, Any]:
    """Return the schema (2020-12) of what TOML readers make of a crawl file."""
    tables = {
        table: _table(key for key in KEYS.values() if key.table == table)
        for table in TABLES
        if table != HOST
    }
    hosts = {
        "type": "object",
        "description": "Settings of single hosts, by host name in quotes.",
        "additionalProperties": _table(HOST_KEYS.values()),
    }
    top = {key.name: _property(key) for key in KEYS.values() if not key.table}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "amicrawl crawl file",
        "type": "object",
        "additionalProperties": False,
        "properties": {**top, **tables, HOST: hosts},
    }


def schema_text() -> str:
    """Return the schema as the file that is shipped holds it."""
    return json.dumps(crawl_file_schema(), indent=2) + "\n"


def shipped_schema() -> str:
    """Return the content of the file that is shipped."""
    return resources.files(__package__).joinpath(FILE_NAME).read_text(encoding="utf-8")


def _table(keys: Iterable[Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _property(key) for key in keys},
    }


def _property(key: Key) -> dict[str, Any]:
    return {**key.kind.schema, "description": description_of(key)}
