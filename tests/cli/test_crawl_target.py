"""What is typed behind `amicrawl crawl` is taken for what it is; a slip gets a sentence that helps."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest

from amicrawl.cli.crawl_target import Target, target_of
from amicrawl.errors import InputError, UsageError

TOML = "public = false\n[seeds]\nfile = 's'\n"


@pytest.mark.parametrize("url", ["https://a.example/", "HTTP://a.example", "https://a.example/x.toml"])
def test_a_url_is_a_site(url: str) -> None:
    assert target_of([url]) == Target("site", {"url": url})


def test_several_urls_are_one_crawl() -> None:
    assert target_of(["http://a.example/", "http://b.example/"]) == Target(
        "site", {"url": "http://a.example/ http://b.example/"}
    )


def test_a_blank_in_a_url_is_part_of_it_and_one_between_urls_is_not() -> None:
    blank = Target("site", {"url": "http://a.example/my%20file"})
    assert target_of(["http://a.example/my file"]) == blank
    urls = "http://a.example/ http://b.example/"
    assert target_of([urls]) == Target("site", {"url": urls})


@pytest.mark.parametrize("name", ["l", "l.txt", "l.csv", "l.tsv", "l.jsonl", "l.jsonl.gz", "l.urls.zst"])
def test_a_file_that_is_no_crawl_file_is_a_seed_list(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("# a list\nhttp://a.example/\n")
    assert target_of([str(path)]) == Target("seeds", {"file": str(path)})


def test_a_list_that_could_be_toml_is_a_list_by_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "l.txt"
    path.write_text(TOML)
    assert target_of([str(path)]) == Target("seeds", {"file": str(path)})


def test_standard_input_and_pipes_are_seed_lists_and_are_not_read_here(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert target_of(["-"]) == Target("seeds", {"file": "-"})
    assert target_of([str(pipe)]) == Target("seeds", {"file": str(pipe)})


@pytest.mark.parametrize("name", ["c.toml", "c.TOML", "c", "c.conf"])
def test_a_crawl_file_is_known_by_its_ending_or_by_what_it_holds(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TOML)
    assert target_of([str(path)]) == path


def test_a_crawl_file_that_is_not_there_is_left_to_its_reader() -> None:
    assert target_of(["none.toml"]) == Path("none.toml")


def test_what_cannot_be_read_as_text_is_a_list(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(b"http://a.example/\n"))
    assert target_of([str(path)]) == Target("seeds", {"file": str(path)})


@pytest.mark.parametrize(
    ("named", "error", "says"),
    [
        (["example.org"], InputError, "write its URL: amicrawl crawl https://example.org"),
        (["example.org:8080/a"], InputError, "amicrawl crawl https://example.org:8080/a"),
        (["seeds.txt"], InputError, "The file 'seeds.txt' is missing. Check the path, or give a URL"),
        (["seeds"], InputError, "Check the path"),
        (["ftp://example.org/"], UsageError, "is not an HTTP or HTTPS URL"),
        (["."], UsageError, "is a directory. Give a URL, a seed list or a crawl file"),
        (["a.toml", "b.toml"], UsageError, "'a.toml' is not an HTTP URL. Give one crawl file"),
        (["http://a.example/", "b.txt"], UsageError, "'b.txt' is not an HTTP URL"),
        (["http//example.org/a"], InputError, "Did you mean http://example.org/a?"),
        (["https:example.org"], InputError, "Check the path"),
        (["https:/example.org/"], InputError, "Did you mean https://example.org/?"),
    ],
)
def test_what_cannot_be_crawled_is_told_with_what_to_type(
    named: list[str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        target_of(named)
