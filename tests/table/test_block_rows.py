"""Blocks of lines give the rows and the rejects that reading each line gives, whatever the lines are."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.archive.table import CCINDEX, EOT, TableReport, make_table
from amicrawl.archive.table.block_rows import rows_of_block
from amicrawl.archive.table.convert import converted
from amicrawl.archive.table.ordering import NotInOrderError, blocks_in_order
from amicrawl.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.errors import DamagedFileError

_KEYS = st.sampled_from(
    [b"com,a)/", b"com,a)/x", b"org,\xc3\xa4)/", b"", b"k\xff", b'a"b', b"!meta", b"a\tb"]
)
_TIMES = st.sampled_from(
    [b"20130225012936", b"20130230012936", b"20220106150849300", b"2013022501293", b"2013 022501293"]
)
_URLS = st.sampled_from(
    [
        "http://a.org/", "https://WWW.a.co.uk:8443/P/?q=1#f", "HTTP://a.org/x", "http://a.org?x", "http://",
        "dns:a.org", "http://münchen.de/ä?ö", "https://a.org/?", "http:/a.org/x", "https://u:p@1.2.3.4:80/",
        "http://a.org#f?x/", "x", "", "http://a.org/\\u0041", 'http://a.org/"', "https://a.org",
    ]
)  # fmt: skip
_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["200", "-", "", "0", "17", "007", "-1", "9223372036854775808", "12x", "text/html"]),
    st.sampled_from([None, True, 5, -1, 1.5, 10**19, ["x"], {"a": "b"}, {"a": 1.25, "b": ["c", 2]}]),
    st.sampled_from(["crawl-data/EOT-2012/segments/IA-001/warc/x.warc.gz", "x.warc.gz", "ä", "\u2028"]),
)
_NAMES = st.sampled_from(
    [
        "mime",
        "status",
        "digest",
        "length",
        "offset",
        "filename",
        "languages",
        "recordid",
        "x",
        "soft-404-detected",
    ]
)
_ODD_LINES = st.sampled_from(
    [
        b"", b"\r", b"no line", b"com,a)/ 20130225012936 []", b"com,a)/ 20130225012936 {",
        b'com,a)/ 20130225012936 {"a"}',
        b'com,a)/ 20130225012936 {"url": "x", "mime": "\xff"}', b'!a 20130225012936 {"url": "x"}',
        b'com,a)/ 20130225012936 {"url": "x", "n": 1e999}',
        b'com,a)/ 20130225012936 {"url": "x", "n": 01}',
        b'com,a)/ 20130225012936 {"url": "x", "n": 1}', b'com,a)/ 20130225012936 {"url": "x", "n": -}',
        b'com,a)/ 20130225012936 {"url": "x", "url": "y"}', b'com,a)/ 20130225012936 {"url": "x"} ',
        b'com,a)/ 20130225012936 {"url": "x", "mime": "a\tb"}', b'com,a)/ 20130225012936 {"url": "x",}',
        b'com,a)/ 20130225012936 {"url": "x", "mime": "a"]', b'com,a)/ 20130225012936 { "url": "x"}',
        b'com,a)/ 20130225012936 {"url": "x", "mime" "a"}',
        b'com,a)/ 20130225012936 {"url": "x", true: "a"}',
        b'com,a)/ 20130225012936 {"url": "x", "mime" : "a"}',
        b'com,a)/ 20130225012936 {"url": "x", "mime": null}',
        b'com,a)/ 20130225012936 {"url": "x", "mime": true}',
    ]
)  # fmt: skip


@st.composite
def _lines(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 3)) == 0:
        return draw(_ODD_LINES)
    fields = {"url": draw(_URLS)} if draw(st.integers(0, 9)) else {}
    fields |= draw(st.dictionaries(_NAMES, _VALUES, max_size=5))
    separators = draw(st.sampled_from([None, (",", ":"), (", ", " : ")]))
    written = json.dumps(fields, separators=separators, ensure_ascii=draw(st.booleans()))
    plain = draw(st.integers(0, 2))
    key = draw(_KEYS) if not plain else b"com,a)/"
    timestamp = draw(_TIMES) if not plain else b"20130225012936"
    return b"%s %s %s" % (key, timestamp, written.encode())


def without_headers(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line and line[:1] != b"!" and line != b"\r"]


@pytest.mark.parametrize("schema", [EOT, CCINDEX], ids=lambda schema: schema.name)
@settings(max_examples=40)
@given(lines=st.lists(_lines(), max_size=12))
def test_a_block_gives_what_its_lines_give_one_by_one(schema: Any, lines: list[bytes]) -> None:
    found = rows_of_block(b"".join(line + b"\n" for line in lines), schema)
    sound = without_headers(lines)
    expected = converted(sound, schema)
    assert found.rows.cast(schema.columns).to_pylist() == expected.rows.to_pylist()
    assert found.rejects == expected.rejects
    assert (found.lines, found.headers) == (len(lines), len(lines) - len(sound))


@settings(max_examples=40)
@given(
    lines=st.lists(_lines(), min_size=1, max_size=4),
    place=st.integers(0, 400),
    octet=st.sampled_from(b'"{}:,0 \\\n\xff\x1f9tA'),
)
def test_a_line_with_one_octet_changed_is_read_alike(lines: list[bytes], place: int, octet: int) -> None:
    block = bytearray(b"".join(line + b"\n" for line in lines * 3))
    block[place % len(block)] = octet
    block += b"\n"
    found = rows_of_block(bytes(block), EOT)
    expected = converted(without_headers(bytes(block).split(b"\n")[:-1]), EOT)
    assert found.rows.cast(EOT.columns).to_pylist() == expected.rows.to_pylist()
    assert found.rejects == expected.rejects


def _line(key: str, time: str = "20130225012936") -> bytes:
    url = f"http://{key}.org/"
    return f'org,{key})/ {time} {{"url": "{url}", "status": "200"}}\n'.encode()


def _keys(out: Path) -> list[str]:
    rows = pq.read_table(min(out.rglob("*.parquet")), columns=["url_surtkey"])
    return [str(key).removeprefix("org,").removesuffix(")/") for key in rows["url_surtkey"].to_pylist()]


def _made(tmp_path: Path, *files: list[str], packed: bool = False) -> tuple[TableReport, Path]:
    paths = []
    for number, keys in enumerate(files):
        paths.append(tmp_path / f"{number}.cdxj")
        octets = b"".join(_line(key) for key in keys)
        paths[-1].write_bytes(gzip.compress(octets) if packed else octets)
    report = make_table(paths, tmp_path / "table", disk=Disk())
    assert report.rows == sum(map(len, files))
    return report, tmp_path / "table"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "files",
    [
        [["a", "b"], ["c", "d"]],
        [["c", "d"], ["a", "b"], []],
        [["a", "c", "e"], ["b", "d", "f"], ["a", "g"]],
        [["a", "z"], ["b"], ["c", "y"], ["x"]],
        [["b", "a"], ["c"]],
        [["a", "c"], ["e", "d"], ["b"]],
    ],
)
def test_rows_of_several_files_come_in_order(
    tmp_path: Path, files: list[list[str]], packed: bool
) -> None:
    _, out = _made(tmp_path, *files, packed=packed)
    assert _keys(out) == sorted(key for keys in files for key in keys)
    assert not list(out.rglob("*.open"))


def test_times_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    source = tmp_path / "a.cdxj"
    source.write_bytes(_line("a", "20130225012937") + _line("a"))
    make_table([source], tmp_path / "table", disk=Disk())
    [path] = (tmp_path / "table").rglob("*.parquet")
    times: Any = pq.read_table(path, columns=["fetch_time"])["fetch_time"].to_pylist()
    assert [time.second for time in times] == [36, 37]


def test_a_file_that_ends_early_is_named_once(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(_line(f"{number:06}") for number in range(50_000)))
    for name, octets in (("a", whole[: len(whole) // 2]), ("b", b"\x1f\x8bno gzip"), ("c", _line("z"))):
        (tmp_path / f"{name}.cdxj.gz").write_bytes(octets)
    report = make_table(sorted(tmp_path.iterdir()), tmp_path / "table", disk=Disk())
    assert sorted(line.partition(",")[0].rpartition("/")[2] for line in report.damaged) == [
        "a.cdxj.gz",
        "b.cdxj.gz",
    ]
    assert 1 < report.rows < 50_000


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from([b"a", b"b", b"bb", b"c", b"d"]), max_size=6), max_size=5))
def test_sorted_files_become_one_sorted_stream_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]
) -> None:
    tmp_path = tmp_path_factory.mktemp("files")
    paths = []
    for number, lines in enumerate(files):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(b"\n".join(sorted(lines)))
    damage: list[DamagedFileError] = []
    found = b"".join(blocks_in_order(paths, damaged=damage.append)).split(b"\n")[:-1]
    assert found == sorted(line for lines in files for line in lines)
    assert not damage


def test_a_file_that_is_not_in_order_is_noticed_where_it_is_merged(tmp_path: Path) -> None:
    for name, lines in (("a", b"a\nz\nb\nd\n"), ("b", b"c\n")):
        (tmp_path / name).write_bytes(lines)
    with pytest.raises(NotInOrderError):
        list(blocks_in_order(sorted(tmp_path.iterdir()), damaged=lambda _: None))
