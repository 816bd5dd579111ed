"""The keys, the schema and the manual of crawl files say the same."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawl.arguments import SeedArguments, SiteArguments
from amicrawl.crawlfile import examine
from amicrawl.crawlfile.keys import (
    CONFIG_TABLES,
    HOST,
    HOST_KEYS,
    KEYS,
    RECRAWL,
    Key,
    crawl_file_schema,
    schema_text,
    shipped_schema,
)

PROJECT = Path(__file__).parents[2]
EXAMPLES = sorted((PROJECT / "examples" / "crawls").glob("*.toml"))
SCHEMA = jsonschema.Draft202012Validator(crawl_file_schema())


def test_every_field_of_the_configuration_has_its_table() -> None:
    # Which Redis is used, and by which road URLs go, is the machine's affair, not the crawl's. The
    # proxy of a browser is for projects with one of their own, which have no crawl file.
    without = {"redis_prefix", "direct", "browser_proxy"}
    assert set(CONFIG_TABLES) == set(CrawlConfig.model_fields) - without
    for name, table in CONFIG_TABLES.items():
        if table not in (HOST, RECRAWL):
            assert KEYS[table, name].setting == PREFIX + name.upper()


def test_every_argument_of_a_spider_has_its_key() -> None:
    # Output and browser have tables of their own; the others are for a command line alone.
    elsewhere = {"out", "run_id", "browser", "config", "fresh", "rebuild", "share"}
    for spider, arguments in (("seeds", SeedArguments), ("site", SiteArguments)):
        keys = {key.name for key in KEYS.values() if spider in key.spiders}
        assert keys == set(arguments.__dataclass_fields__) - elsewhere


def test_no_key_stands_in_two_tables() -> None:
    names = [key.name for key in KEYS.values()]
    assert len(names) == len(set(names))


def test_the_schema_that_is_shipped_is_the_one_of_the_keys() -> None:
    """To renew it: write `schema_text()` into the file."""
    assert shipped_schema() == schema_text()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(crawl_file_schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_the_examples_fit_the_schema_and_are_good(path: Path) -> None:
    SCHEMA.validate(tomllib.loads(path.read_text()))
    assert examine(path, is_part=path.name == "common.toml").faults == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"politeness": {"dealy": 1}},
        {"politeness": {"delay": "fast"}},
        {"host": {"a.example": {"auth": "ann:geheim"}}},
        {"request": {"cookies": "a=b"}},
        {"delay": 1},
    ],
)
def test_the_schema_refuses_what_the_check_refuses(wrong: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid(wrong)


VALUES = st.one_of(
    st.integers(-2, 70_000),
    st.floats(-2, 5000),
    st.booleans(),
    st.lists(st.sampled_from(["a", ""]), max_size=2),
    st.sampled_from(
        [
            "a",
            "obey",
            "7d",
            "64MiB",
            "env:A",
            "env:",
            "file:x",
            "http://h:1",
            "s3://b",
            "file:///x",
            "%Y",
            "localhost:9000",
            "text",
            "site",
            "browser",
            "exact",
            "inf",
            "lines",
        ]
    ),
    st.sampled_from(["", "1 KB", {"a": "b"}, {"a": 1}]),
)


@pytest.mark.slow
@given(st.sampled_from([*KEYS.values(), *HOST_KEYS.values()]), VALUES)
def test_a_value_fits_a_key_where_it_fits_the_schema(key: Key, value: object) -> None:
    whole = isinstance(value, float) and value.is_integer()
    least = key.kind.schema.get("anyOf", [{}])[0].get("minimum", 0)
    # JSON has one kind of number, and cannot compare sizes; TOML and the check are stricter there.
    if not whole and not (isinstance(value, str) and least):
        assert key.kind.fits(value) == jsonschema.Draft202012Validator(key.kind.schema).is_valid(value)
