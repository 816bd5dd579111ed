"""What a location does, it does on every file system: a directory, S3, Google Cloud Storage."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from object_store import CREDENTIALS, GoogleStore, ObjectStore

from amicrawl.archive.location import Location
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Place = Callable[[str], Location]


@pytest.fixture(scope="module", params=["path", "file://", "s3://", "gs://"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return what names a location."""
    root = tmp_path_factory.mktemp("place")
    if request.param in {"path", "file://"}:
        start = str(root) if request.param == "path" else root.as_uri()
        yield lambda name: Location.of(f"{start}/{name}")
        return
    os.environ.update(CREDENTIALS)
    try:
        with (ObjectStore if request.param == "s3://" else GoogleStore)() as store:
            yield lambda name: Location.of(store.url(name))
    finally:
        for name in CREDENTIALS:
            del os.environ[name]


def test_a_file_is_read_as_it_was_put(place: Place, tmp_path: Path) -> None:
    source = tmp_path / "source"
    # More than one piece of a transfer; the name must not have it decompressed on the way.
    source.write_bytes(os.urandom((20 << 20) + 7))
    where = place("put/a.warc.gz")

    where.put(source)

    assert where.read() == source.read_bytes()
    (tmp_path / "here").mkdir()
    assert where.fetched(tmp_path / "here").read_bytes() == source.read_bytes()
    facts = where.facts()
    assert facts is not None
    assert facts.size == source.stat().st_size


def test_a_file_replaces_the_one_of_its_name(place: Place) -> None:
    where = place("replaced/a")
    where.write(b"a long one")
    where.write(b"short")
    assert where.read() == b"short"


@pytest.mark.parametrize("name", ["a b", "crawl=A%2FB", "100%", "question?mark", "a#b", "é+&=;,@:!'"])
def test_the_name_of_a_file_may_have_any_character(place: Place, tmp_path: Path, name: str) -> None:
    root = place("names")
    where = root.below(name)

    where.write(name.encode())

    assert [*root.files()] == [name]
    assert (where.as_path.name, where.last_part) == (name, name)
    assert where.fetched(tmp_path).read_text() == name
    assert where.beside(".copy").facts() is None
    where.move_to(where.beside(".copy"))
    assert [*root.files()] == [f"{name}.copy"]
    root.remove()


def test_files_below_are_listed_in_order_and_removed_together(place: Place) -> None:
    root = place("tree")
    for name in ("b/2", "a", "b/10"):
        root.below(name).write(name.encode())
    assert {name: facts.size for name, facts in root.files().items()} == {"a": 1, "b/10": 4, "b/2": 3}
    assert list(root.files()) == ["a", "b/10", "b/2"]
    root.below("a").remove_file()
    root.below("a").remove_file()
    assert list(root.files()) == ["b/10", "b/2"]
    root.remove()
    root.remove()
    assert root.files() == {}


def test_what_is_moved_has_its_new_name_only(place: Place) -> None:
    first, second = place("moved/from/x"), place("moved/to/y")
    first.write(b"data")
    first.move_to(second)
    assert (first.read(), second.read()) == (None, b"data")


def test_what_is_missing_is_said_to_be(place: Place) -> None:
    missing = place("missing/x")
    assert (missing.facts(), missing.read(), missing.files()) == (None, None, {})


@pytest.mark.parametrize("name", ["ftp://a/b", "s3://bucket/a b", "hdfs://127.0.0.1:9/x"])
def test_a_uri_that_cannot_be_used_is_refused_with_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of HDFS, the reason is the library that this machine lacks."""
    for variable in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match=f"^{name} cannot be used: "):
        Location.of(name)


def test_a_file_whose_name_is_not_utf_8_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.warc.gz")
    path.write_bytes(b"four")
    facts = Location.of(path).facts()
    assert facts is not None
    assert facts.size == 4
