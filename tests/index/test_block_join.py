"""Merging blocks gives what the rules of `join.py` give line by line, whatever the lines are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
import pytest
from faulty_disks import FullDisk
from hypothesis import given, settings
from hypothesis import strategies as st
from index.merging_lines import FOUND, IDS, INDEX_FIELDS, any_line, by_the_rules, sides_in_lines

from amicrawl.archive.arrow_texts import texts_from
from amicrawl.archive.index.merging.joining import Undecided
from amicrawl.archive.index.merging.merge import SIDES_IN_MEMORY, MergeJob, merge_job
from amicrawl.archive.index.merging.side_blocks import side_batches
from amicrawl.archive.index.merging.side_table import SideTable, hashes_of
from amicrawl.archive.index.merging.sides import JoinKeys, Side, rows_as_sides, sides_as_rows
from amicrawl.archive.lines.blocks import Block
from amicrawl.disk import Disk
from amicrawl.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.archive.arrow_texts import Spans


@pytest.mark.parametrize("by_key_only", [False, True])
@settings(max_examples=40)
@given(
    index=st.lists(any_line(INDEX_FIELDS), max_size=10),
    side=st.lists(any_line(FOUND), max_size=8),
    held=st.sampled_from([1000, 0]),
)
def test_blocks_are_merged_as_lines_are(
    tmp_path_factory: pytest.TempPathFactory,
    by_key_only: bool,
    index: list[bytes],
    side: list[bytes],
    held: int,
) -> None:
    tmp_path = tmp_path_factory.mktemp("merge")
    source, sidecar = tmp_path / "in.cdxj", tmp_path / "side.cdxj"
    source.write_bytes(b"".join(line + b"\n" for line in index))
    sidecar.write_bytes(b"".join(line + b"\n" for line in side))
    (tmp_path / "out").mkdir()
    merged = merge_job(MergeJob((source,), (sidecar,), tmp_path / "out", by_key_only, held))
    lines, counts = by_the_rules(source.read_bytes(), sidecar, by_key_only=by_key_only)
    assert (tmp_path / "out" / "in.cdxj").read_bytes().split(b"\n")[:-1] == lines
    assert merged.counts == counts


@pytest.mark.parametrize("described", [[0], [1], [0, 1], [1, 0]])
def test_texts_with_one_hash_are_distinguished(tmp_path: Path, described: list[int]) -> None:
    texts = "4f5bb2840ad000ab", "893ea3896uz9jfsx"
    first, second = hashes_of([texts_from(texts)]).tolist()
    assert first == second
    source, sidecar = tmp_path / "in.cdxj", tmp_path / "side.cdxj"
    for tie in ("recordid", "filename"):
        line = b'org,a)/%s 20121026215942 {"url": "http://a/", "offset": "1", "%s": "%s"}\n'
        side = (
            b'org,b)/ 20121026215942 {"offset": "1", "%s": "%s", "Preservation-Identifier": "fmt/%d"}\n'
        )
        name, said = tie.encode(), [text.encode() for text in texts]
        source.write_bytes(b"".join(line % (b"", name, each) for each in said))
        sidecar.write_bytes(b"".join(side % (name, said[number], number) for number in described))
        (tmp_path / tie).mkdir()
        merge_job(MergeJob((source,), (sidecar,), tmp_path / tie))
        lines, _ = by_the_rules(source.read_bytes(), sidecar, by_key_only=False)
        assert (tmp_path / tie / "in.cdxj").read_bytes().split(b"\n")[:-1] == lines
        assert [b"fmt/0" in lines[0], b"fmt/1" in lines[1]] == [0 in described, 1 in described]


@settings(max_examples=40)
@given(
    lines=st.lists(any_line(INDEX_FIELDS), min_size=1, max_size=4),
    place=st.integers(0, 800),
    octet=st.sampled_from(b'"{}:,0 \\\n\xff\x1f9tA'),
)
def test_a_line_with_one_octet_changed_is_merged_alike(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], place: int, octet: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("merge")
    source, sidecar = tmp_path / "in.cdxj", tmp_path / "side.cdxj"
    index = bytearray(b"".join(line + b"\n" for line in lines * 3))
    index[place % len(index)] = octet
    source.write_bytes(bytes(index) + b"\n")
    side = {"recordid": IDS[0], "Preservation-Identifier": "fmt/96", "Soft-404-Detected": 0.5}
    sidecar.write_bytes(b"org,a)/ 20121026215942 %s\n" % orjson.dumps(side))
    (tmp_path / "out").mkdir()
    merged = merge_job(MergeJob((source,), (sidecar,), tmp_path / "out"))
    expected, counts = by_the_rules(source.read_bytes(), sidecar, by_key_only=False)
    assert (tmp_path / "out" / "in.cdxj").read_bytes().split(b"\n")[:-1] == expected
    assert merged.counts == counts


@settings(max_examples=40)
@given(st.lists(any_line(FOUND), max_size=8))
def test_a_sidecar_is_read_in_blocks_as_in_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    sidecar = tmp_path_factory.mktemp("side") / "side.cdxj"
    sidecar.write_bytes(b"".join(line + b"\n" for line in lines))
    told: tuple[list[str], list[str]] = ([], [])
    batches = list(side_batches(sidecar, report=told[0].append))
    found = [side for batch in batches for side in rows_as_sides(pa.Table.from_batches([batch]))]
    assert found == list(sides_in_lines(sidecar, report=told[1].append))
    assert told[0] == told[1]


def test_one_record_is_found_among_many_with_the_same_identifier() -> None:
    ids = ["same"] * 40 + [f"other-{number}" for number in range(200)]
    key = "org,a)/ 20121026215942"
    table = SideTable(sides_as_rows([Side(JoinKeys(key, each, "", "", ""), b"") for each in ids]))
    # Among so many are some whose hashes begin as that of the forty does, and come before it.
    asked = ["same", *(f"other-{number}" for number in range(5000))]
    seconds, whens = texts_from([key[-14:]] * len(asked)), texts_from([key] * len(asked))
    found = table.by_id(texts_from(asked), seconds, whens)
    assert found.sides.tolist() == [39, *range(40, 240), *[-1] * 4800]


def _said(spans: Spans) -> list[str]:
    return spans.texts().to_pylist()  # type: ignore[no-any-return]


@settings(max_examples=40)
@given(st.lists(any_line(FOUND), max_size=8))
def test_the_texts_of_plain_lines_are_those_that_a_parser_finds(lines: list[bytes]) -> None:
    block = Block(b"".join(line + b"\n" for line in lines))
    for alike in block.alike:
        shape = alike.shape
        for row in alike.rows:
            key, second, text = block.line(row).split(b" ", 2)
            parsed = orjson.loads(text)
            one = np.array([row])
            assert _said(block.whens(one)) == [f"{key.decode()} {second.decode()}"]
            assert _said(block.keys(one)) == [key.decode()]
            assert _said(block.seconds(one)) == [second.decode()]
            only = alike.some(alike.rows == row)
            for name, value in parsed.items():
                if isinstance(value, str):
                    place = shape.text(name)
                    assert place is not None
                    assert _said(block.texts(only, place)) == [value]
            for name, numbers in shape.numbers.items():
                if name in parsed:
                    (number,) = numbers
                    assert orjson.loads(_said(block.scalars(only, number))[0]) == parsed[name]


def test_a_line_of_another_shape_at_the_end_is_not_read_beyond_it() -> None:
    found = '"Identified-Payload-Type": {"fido": "a/b"}, "Soft-404-Detected": 0.25'
    lines = [
        '{"Identified-Payload-Type" : {"python-magic" : "c", "fido" : "a/b"}, "Soft-404-Detected" : 1}',
        f'{{{found}, "recordid": "{IDS[0]}"}}',
    ]
    block = Block("".join(f"org,a)/ 20121026215942 {line}\n" for line in lines).encode())
    assert sorted(alike.rows.tolist() for alike in block.alike) == [[0], [1]]


def test_lines_of_one_producer_are_plain() -> None:
    lines = [
        f'org,a)/{number} 20121026215942 {{"url": "{number}", "soft-404-detected": {number / 8}}}\n'
        for number in range(50)
    ]
    block = Block("".join(lines).encode())
    assert [len(alike.rows) for alike in block.alike] == [50]


class _Files:
    """Files in memory."""

    def __init__(self) -> None:
        self.files = [b""]

    def write(self, octets: bytes | memoryview) -> None:
        self.files[-1] += octets

    def end_file(self) -> None:
        self.files.append(b"")


def test_undecided_lines_are_replaced_in_their_files(tmp_path: Path) -> None:
    files = _Files()
    undecided = Undecided(files, scratch=tmp_path, disk=Disk())
    none = np.empty(0, np.int64)
    undecided.add(b"a\n", none)
    undecided.end_file()
    undecided.add(b"x1\nx2\nb\nx\nc\n", np.array([0, 3, 8]))
    undecided.end_file()
    undecided.add(b"xx\n", np.array([0]))
    undecided.end_file()
    undecided.add(b"d\n", none)
    undecided.add(b"e\nx\n", np.array([2]))
    undecided.end_file()
    assert list(undecided.lines()) == list(undecided.lines()) == [b"x1", b"x2", b"x", b"xx", b"x"]
    undecided.replace(iter([b"1", b"2", b"3", b"4", b"5"]))
    assert files.files == [b"a\n", b"1\n2\nb\n3\nc\n", b"4\n", b"d\ne\n5\n", b""]


def test_a_disk_that_is_full_is_told_wherever_lines_wait(tmp_path: Path) -> None:
    """They do where both sides are partitioned, and behind a line that is not yet decided."""
    index, sidecar = tmp_path / "in.cdxj", tmp_path / "side.cdxj"
    escaped = '{"url": "http://a/\\u0020", "offset": "%d", "filename": "wwwwwwwwwwwwwwwwwwwwwwwwwwwwww"}'
    index.write_text("".join(f"a)/{n} 20240101000000 {escaped % n}\n" for n in range(2000)))
    sidecar.write_text("".join(f'a)/{n} 20240101000000 {{"puid": "{"x" * 99}"}}\n' for n in range(2000)))
    job = MergeJob((index,), (sidecar,), tmp_path)
    for held in (SIDES_IN_MEMORY, 100):
        one = job._replace(sides_in_memory=held, out=tmp_path / "out")
        one.out.mkdir(exist_ok=True)
        with pytest.raises(OutputError, match="No space left"):
            merge_job(one, disk=FullDisk())
