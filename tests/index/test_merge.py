"""Merging: every line is there afterwards, and has what was found about its own record."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from amicrawl.archive.index.merging.merge import Merged, MergeJob, merge, merge_job, plan
from amicrawl.archive.index.sidecar.findings import added_fields, language_code
from amicrawl.cli import app
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEY = "129,76,194,140)/publications/eng-pamphlets/index.html"
SECOND = "20121026215942"
URL = "http://140.194.76.129/publications/eng-pamphlets/index.html"
WARC = "UNT-20121026215944486-00552-5180~libharvest1.lib.unt.example~8443.warc.gz"
PATH = f"crawl-data/EOT-2012/segments/UNT-001/warc/{WARC}"
FOUND = {
    "Identified-Payload-Type": {"fido": "text/html", "python-magic": "text/html"},
    "Preservation-Identifier": "fmt/99",
    "Charset-Detected": {"encoding": "ascii", "confidence": 1.0},
    "Languages-cld2": {
        "reliable": True,
        "text-bytes": 16199,
        "languages": [{"name": "ENGLISH", "code": "en", "text-covered": 99, "score": 878.0}],
    },
}
ONE, TWO, THREE = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))


def line(url: str = URL, *, key: str = KEY, second: str = SECOND, **fields: Any) -> str:
    """Return a line of an index; `recordid` and others as *fields*."""
    usual = {
        "url": url,
        "mime": "text/html",
        "status": "200",
        "digest": "VJQMCBDSG6QIN4LBRRQZH2JWRVJ5JYCF",
    }
    place = {"length": "12637", "offset": "587", "filename": PATH}
    return f"{key} {second} {json.dumps({**usual, **place, **fields})}"


def side_line(puid: str = "fmt/99", *, key: str = KEY, second: str = SECOND, **fields: Any) -> str:
    """Return the line of a sidecar as CDXJ."""
    return f"{key} {second} {json.dumps({**FOUND, 'Preservation-Identifier': puid, **fields})}"


def side_record(
    puid: str,
    *,
    record_id: str = "",
    url: str = URL,
    filename: str = "",
    offset: int | None = None,
    tie: str = "",
) -> bytes:
    """Return a record of a sidecar WARC."""
    block = f"Preservation-Identifier: {puid}".encode()
    fields = [
        ("WARC-Type", "metadata"),
        ("WARC-Record-ID", "<urn:uuid:757626b2-c1fd-4430-abd0-545cdee7cefc>"),
        ("WARC-Date", "2012-10-26T21:59:42Z"),
        ("WARC-Target-URI", url),
        (tie or "WARC-Concurrent-ID", f"<urn:uuid:{record_id}>" if record_id else ""),
        ("WARC-Source-Filename", filename),
        ("WARC-Source-Offset", "" if offset is None else str(offset)),
        ("Content-Type", "application/warc-fields"),
        ("Content-Length", str(len(block))),
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields if value)
    return gzip.compress(f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n")


class Result:
    """What merging some lines with some records gave."""

    def __init__(self, lines: Sequence[str], merged: Merged) -> None:
        self.lines = lines
        self.counts = merged.counts
        self.faults = merged.faults

    @property
    def puids(self) -> list[str | None]:
        return [json.loads(each.split(" ", 2)[2]).get("puid") for each in self.lines]


def merge_lines(
    tmp_path: Path,
    lines: Sequence[str],
    sides: Sequence[str | bytes],
    *,
    by_key_only: bool = False,
    held: int | None = None,
) -> Result:
    """Merge *lines* with *sides*: texts are lines of a sidecar, octets are records of one."""
    index = tmp_path / "in.cdxj"
    index.write_text("".join(each + "\n" for each in lines))
    sidecars = []
    if texts := [each for each in sides if isinstance(each, str)]:
        sidecars.append(tmp_path / "side.cdxj")
        sidecars[-1].write_text("".join(each + "\n" for each in texts))
    if records := [each for each in sides if isinstance(each, bytes)]:
        sidecars.append(tmp_path / "side.warc.meta.gz")
        sidecars[-1].write_bytes(b"".join(records))
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    job = MergeJob((index,), tuple(sidecars), out, by_key_only)
    if held is not None:
        job = job._replace(sides_in_memory=held)
    merged = merge_job(job)
    assert not list(out.glob("*.open"))
    return Result((out / "in.cdxj").read_text().splitlines(), merged)


def test_the_line_of_the_talk_is_merged_byte_for_byte_but_for_shares(tmp_path: Path) -> None:
    talk = (
        f'{KEY} {SECOND} {{"url": "{URL}", "mime": "text/html", "status": "200", '
        f'"digest": "VJQMCBDSG6QIN4LBRRQZH2JWRVJ5JYCF", "length": "12637", "offset": "587", '
        f'"filename": "{PATH}", '
        '"mime-detected": "text/html", "puid": "fmt/99", "charset": "ascii", "languages": "eng"}'
    )
    ours = talk.removesuffix("}") + ', "language-shares": "99"}'
    for by_key_only, expected in ((True, talk), (False, ours)):
        merged = merge_lines(tmp_path, [line()], [side_line()], by_key_only=by_key_only)
        assert merged.lines == [expected]


def test_of_records_with_one_identity_a_line_gets_that_of_its_own_key(tmp_path: Path) -> None:
    keys = (KEY, KEY + "/b", KEY + "/c")
    lines = [line(key=key, recordid=ONE) for key in keys]
    sides = [side_line(puid=f"fmt/{n}", key=key, recordid=ONE) for n, key in enumerate(keys[:2])]
    for held in (1000, 0):
        assert merge_lines(tmp_path, lines, sides, held=held).puids == ["fmt/0", "fmt/1", "fmt/1"]


@pytest.mark.parametrize("held", [1000, 0], ids=["in memory", "set aside"])
class TestBothInMemoryAndSetAside:
    """What holds however many records there are."""

    def test_twins_of_one_second_keep_their_own_data(self, tmp_path: Path, held: int | None) -> None:
        lines = [line(recordid=ONE), line(URL.replace("http", "https"), recordid=TWO, offset="99")]
        sides = [side_record("fmt/2", record_id=TWO), side_record("fmt/1", record_id=ONE)]
        result = merge_lines(tmp_path, lines, sides, held=held)
        assert result.puids == ["fmt/1", "fmt/2"]
        assert (result.counts.by_id, result.counts.unmatched, result.counts.records_unused) == (2, 0, 0)

    def test_duplicate_keys_get_the_record_of_their_place(
        self, tmp_path: Path, held: int | None
    ) -> None:
        lines = [line(offset=str(offset)) for offset in (100, 200, 300)]
        sides = [side_record(f"fmt/{offset}", filename=WARC, offset=offset) for offset in (300, 100)]
        result = merge_lines(tmp_path, lines, sides, held=held)
        assert result.puids == ["fmt/100", None, "fmt/300"]
        assert (result.counts.by_place, result.counts.unmatched) == (2, 1)

    def test_a_post_key_is_matched_by_id(self, tmp_path: Path, held: int | None) -> None:
        key = KEY + "?__wb_method=post&a=1"
        result = merge_lines(
            tmp_path, [line(key=key, recordid=ONE)], [side_record("fmt/1", record_id=ONE)], held=held
        )
        assert result.puids == ["fmt/1"]

    def test_a_capture_in_an_arc_is_matched_by_file_and_offset(
        self, tmp_path: Path, held: int | None
    ) -> None:
        lines = [
            line(filename="a/DOTGOV.arc.gz", offset="77"),
            line(filename="a/OTHER.arc.gz", offset="77"),
        ]
        result = merge_lines(
            tmp_path, lines, [side_record("fmt/1", filename="DOTGOV.arc.gz", offset=77)], held=held
        )
        assert result.puids == ["fmt/1", None]
        assert result.counts.by_place == 1

    def test_a_missing_id_falls_back_to_key_and_second(self, tmp_path: Path, held: int | None) -> None:
        lines = [line(recordid=ONE), line(key="org,x)/", recordid=TWO)]
        result = merge_lines(tmp_path, lines, [side_line("fmt/1")], held=held)
        assert result.puids == ["fmt/1", None]
        assert (result.counts.by_key, result.counts.unmatched) == (1, 1)

    def test_the_404_twin_of_a_page_gets_nothing_of_it(self, tmp_path: Path, held: int | None) -> None:
        page, missing = line(recordid=ONE), line(URL + "#2", status="404", recordid=TWO)
        result = merge_lines(tmp_path, [missing, page], [side_record("fmt/1", record_id=ONE)], held=held)
        assert result.puids == [None, "fmt/1"]
        assert result.lines[0] == missing

    def test_what_an_id_has_given_away_a_key_cannot_take(self, tmp_path: Path, held: int | None) -> None:
        lines = [line(), line(URL.replace("http", "https"), recordid=ONE)]
        result = merge_lines(tmp_path, lines, [side_record("fmt/1", record_id=ONE)], held=held)
        assert result.puids == [None, "fmt/1"]
        assert (result.counts.by_id, result.counts.by_key) == (1, 0)

    def test_a_digest_tells_twins_apart(self, tmp_path: Path, held: int | None) -> None:
        lines = [line(digest="sha1:AAA"), line(digest="BBB"), line(digest="CCC")]
        sides = [side_line("fmt/2", digest="BBB"), side_line("fmt/1", digest="AAA"), side_line("fmt/0")]
        result = merge_lines(tmp_path, lines, sides, held=held)
        assert result.puids == ["fmt/1", "fmt/2", "fmt/0"]
        assert (result.counts.by_digest, result.counts.by_key) == (2, 1)

    def test_a_record_of_another_digest_is_not_joined_by_key_and_second(
        self, tmp_path: Path, held: int | None
    ) -> None:
        sides = [side_line("fmt/1", digest="sha1:BBB")]
        result = merge_lines(tmp_path, [line(digest="AAA")], sides, held=held)
        assert result.puids == [None]
        assert (result.counts.by_key, result.counts.unmatched, result.counts.records_unused) == (0, 1, 1)

    def test_records_that_cannot_be_told_apart_are_given_to_nobody(
        self, tmp_path: Path, held: int | None
    ) -> None:
        result = merge_lines(tmp_path, [line()], [side_line("fmt/1"), side_line("fmt/2")], held=held)
        assert result.puids == [None]
        assert (result.counts.ambiguous, result.counts.unmatched, result.counts.records_unused) == (
            1,
            1,
            2,
        )

    def test_records_that_say_the_same_need_not_be_told_apart(
        self, tmp_path: Path, held: int | None
    ) -> None:
        result = merge_lines(tmp_path, [line(), line()], [side_line(), side_line()], held=held)
        assert result.puids == ["fmt/99", "fmt/99"]
        assert (result.counts.by_key, result.counts.records_unused) == (2, 0)

    @pytest.mark.parametrize("of_line", [{"filename": "a.warc.gz", "offset": "7"}, {"offset": "7"}])
    def test_an_offset_without_a_file_separates_nothing(
        self, of_line: dict[str, str], tmp_path: Path, held: int | None
    ) -> None:
        """Whether it did hung on whether other records of the sidecar, and of the part, had a file."""
        sides = [side_line("fmt/1", offset="8"), side_line("fmt/1", filename="b.warc.gz", offset="9")]
        for several in (sides, sides[:1]):
            result = merge_lines(tmp_path, [line(**of_line)], several, held=held)
            assert result.puids == ["fmt/1"]

    def test_by_key_only_the_last_record_wins_and_every_line_gets_it(
        self, tmp_path: Path, held: int | None
    ) -> None:
        sides = [side_line("fmt/1"), side_line("fmt/2")]
        lines = [line(recordid=ONE), line(recordid=TWO)]
        result = merge_lines(tmp_path, lines, sides, held=held, by_key_only=True)
        assert result.puids == ["fmt/2", "fmt/2"]

    def test_a_line_that_is_none_is_copied_and_counted(self, tmp_path: Path, held: int | None) -> None:
        odd = ['!meta 0 {"a": 1}', "broken", "com,a)/ 20121026215942 [1]", line()]
        result = merge_lines(tmp_path, odd, [side_line()], held=held)
        assert result.lines[:3] == odd[:3]
        assert '"puid": "fmt/99"' in result.lines[3]
        assert (result.counts.lines, result.counts.malformed) == (4, 2)

    @pytest.mark.parametrize("by_key_only", [False, True])
    def test_headers_and_blank_lines_are_copied_and_are_no_damage(
        self, by_key_only: bool, tmp_path: Path, held: int | None
    ) -> None:
        """Every merge of an index with a header ended with the exit code of damage."""
        odd = ["!OpenWayback-CDXJ 1.0", "", line()]
        result = merge_lines(tmp_path, odd, [side_line()], held=held, by_key_only=by_key_only)
        assert result.lines[:2] == odd[:2]
        assert (result.counts.lines, result.counts.malformed) == (3, 0)


@pytest.mark.parametrize("tie", ["WARC-Refers-To", "WARC-Concurrent-To", "WARC-Concurrent-ID"])
def test_all_names_for_the_source_record_are_read(tmp_path: Path, tie: str) -> None:
    record = side_record("fmt/1", record_id=ONE, tie=tie)
    assert merge_lines(tmp_path, [line(recordid=f"<urn:uuid:{ONE}>")], [record]).puids == ["fmt/1"]


_ties = st.tuples(
    st.sampled_from(["", ONE, TWO, THREE]), st.sampled_from([None, 1, 2]), st.sampled_from("ab")
)


@settings(max_examples=30)
@given(lines=st.lists(_ties, max_size=7), sides=st.lists(_ties, max_size=5))
def test_no_line_is_lost_and_memory_makes_no_difference(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], sides: list[Any]
) -> None:
    tmp_path = tmp_path_factory.mktemp("merge")
    written = [
        line(
            key=f"org,{key})/",
            second=f"2012102621594{number % 2}",
            recordid=record_id,
            offset=str(offset),
        )
        for number, (record_id, offset, key) in enumerate(lines)
    ]
    records = [
        side_line(
            f"fmt/{number}",
            key=f"org,{key})/",
            second=f"2012102621594{number % 2}",
            recordid=record_id,
            offset=offset,
            filename=WARC if offset else "",
        )
        for number, (record_id, offset, key) in enumerate(sides)
    ]
    one, other = (merge_lines(tmp_path, written, records, held=held) for held in (1000, 0))
    assert one.lines == other.lines
    assert one.counts == other.counts
    assert [each.partition(', "mime-detected"')[0].removesuffix("}") for each in one.lines] == [
        each.removesuffix("}") for each in written
    ]
    assert one.counts.lines == len(written)
    assert one.counts.records == len(records)


def _covering(code: str, percent: object) -> dict[str, object]:
    return {"code": code, "text-covered": percent}


@pytest.mark.parametrize(
    "found",
    [
        [_covering("ru", 83), _covering("en", 12)],
        [_covering("ru", 83), _covering("xx-A", 9), _covering("en", 8)],
        [_covering("ru", 83), {"code": "en"}],
        [_covering("ru", -1)],
        [_covering("ru", 8.5), _covering("en", 3)],
        [_covering("ru", "83")],
        [_covering("ru", 8), {"code": "en", "more": {"text-covered": 9}}],
        [_covering(code, 20) for code in ("ru", "en", "de", "fr")],
    ],
)
def test_shares_of_lines_alike_are_those_that_a_parser_finds(tmp_path: Path, found: list[Any]) -> None:
    said = {"Languages-cld2": {"reliable": True, "languages": found}}
    # A line with an escape is parsed.
    plain, parsed = (
        merge_lines(tmp_path, [line()], [f"{KEY} {SECOND} {json.dumps({**said, 'note': note})}"]).lines
        for note in ("", "\\")
    )
    assert plain == parsed
    assert json.loads(plain[0].split(" ", 2)[2]).items() >= added_fields(said).items()


def test_a_field_that_is_there_already_is_written_over_in_its_place(tmp_path: Path) -> None:
    result = merge_lines(tmp_path, [line(puid="x-fmt/1", redirect="-")], [side_line()])
    assert result.lines == [
        line(puid="fmt/99", redirect="-").removesuffix("}")
        + ', "mime-detected": "text/html", "charset": "ascii", "languages": "eng"'
        + ', "language-shares": "99"}'
    ]


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        ({"Identified-Payload-Type": {"fido": "a/b"}}, {"mime-detected": "a/b"}),
        ({"Identified-Payload-Type": {"fido": "a/b", "python-magic": "c/d"}}, {"mime-detected": "c/d"}),
        ({"Soft-404-Detected": 0.0222}, {"soft-404-detected": 0.0222}),
        ({"Soft-404-Detected": 0}, {}),
        ({"Soft-404-Detected": float("inf")}, {}),
        ({"Soft-404-Detected": True}, {}),
        ({"Soft-404-Detected": 0.0}, {}),
        ({"Soft-404-Detected": "x", "Charset-Detected": 5}, {}),
        ({"Languages-cld2": [], "Preservation-Identifier": {}}, {}),
        ({"Languages-cld2": {"languages": [{"code": each} for each in ("zh", "zh-Hant", "xx-A", "en")]}},
         {"languages": "zho,zho"}),
        ({"Languages-cld2": {"languages": [{"code": "un"}, 5, {"code": None}]}}, {}),
        ({"Languages-cld2": {"languages": [_covering("ru", 80), _covering("xx", 9), _covering("en", 8)]
          }}, {"languages": "rus,eng", "language-shares": "80,8"}),
        ({"Languages-cld2": {"languages": [_covering("ru", 83), _covering("en", 101)]}},
         {"languages": "rus,eng"}),
        ({"Languages-cld2": {"languages": [_covering("ru", 83), _covering("en", 8.5)]}},
         {"languages": "rus,eng"}),
        ({"Languages-cld2": {"languages": [_covering("ru", True)]}}, {"languages": "rus"}),
    ],
)  # fmt: skip
def test_what_was_found_becomes_fields(found: dict[str, Any], fields: dict[str, Any]) -> None:
    assert added_fields(found) == fields


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("de", "deu"), ("fr", "fra"), ("iw", "heb"), ("jw", "jav"), ("ie", "ile"), ("sr-ME", "srp"),
        ("zh-Hant", "zho"), ("ceb", "ceb"), ("xx-Cher", None), ("un", None), ("", None), ("zzz", None),
    ],
)  # fmt: skip
def test_language_codes_have_three_letters(code: str, expected: str | None) -> None:
    assert language_code(code) == expected


def test_files_are_paired_by_name_and_keep_their_names(tmp_path: Path) -> None:
    indexes, sides, out = (tmp_path / name for name in ("cdxj", "meta", "merged"))
    indexes.mkdir()
    sides.mkdir()
    for name in ("a.warc", "b.warc", "b.arc"):
        (indexes / f"{name}.cdxj.gz").write_bytes(
            gzip.compress(line(url=f"http://{name}/").encode() + b"\n")
        )
    for name in ("a.warc", "b.arc"):
        (sides / f"{name}.meta.gz").write_bytes(side_record(f"fmt/{name}"))
    command = ["merge", str(indexes), str(sides), "-o", str(out), "--processes", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == ExitCode.DONE, result.output
    assert "3 lines in 3 files" in result.output
    assert "by key and second 2; 1 copied" in result.output
    assert sorted(path.name for path in out.iterdir()) == ["a.warc.cdxj", "b.arc.cdxj", "b.warc.cdxj"]
    assert '"puid": "fmt/b.arc"' in (out / "b.arc.cdxj").read_text()
    assert "puid" not in (out / "b.warc.cdxj").read_text()


def test_files_that_are_worth_it_are_merged_in_processes(tmp_path: Path) -> None:
    indexes, sides = [], []
    for name in ("a", "b"):
        indexes.append(tmp_path / f"{name}.warc.cdxj")
        indexes[-1].write_text(line(recordid=name) + "\n")
        sides.append(tmp_path / f"{name}.warc.meta.gz")
        sides[-1].write_bytes(side_record(f"fmt/{name}", record_id=name))
    merged = merge(indexes, sides, tmp_path / "out", processes=2, worth_a_process=1)
    assert (merged.counts.by_id, merged.files, merged.faults) == (2, 2, [])
    assert '"puid": "fmt/b"' in (tmp_path / "out" / "b.warc.cdxj").read_text()


def test_sidecars_of_other_names_are_merged_with_all_indexes(tmp_path: Path) -> None:
    indexes = []
    for number in range(3):
        indexes.append(tmp_path / f"part-{number}.cdxj")
        lines = [line(recordid=f"{number}-{each}") for each in range(number)]
        indexes[-1].write_text("".join(each + "\n" for each in lines))
    side = tmp_path / "all.warc.meta.gz"
    side.write_bytes(b"".join(side_record(f"fmt/{each}", record_id=each) for each in ("2-1", "1-0")))
    assert len(plan(indexes, [side], tmp_path / "out")) == 1
    merged = merge(indexes, [side], tmp_path / "out")
    assert (merged.counts.by_id, merged.files) == (2, 3)
    counts = [(tmp_path / "out" / path.name).read_text().count("puid") for path in indexes]
    assert counts == [0, 1, 1]


def test_a_broken_sidecar_is_told_and_the_lines_are_kept(tmp_path: Path) -> None:
    index, side = tmp_path / "a.cdxj", tmp_path / "a.warc.meta.gz"
    index.write_text(line() + "\n")
    side.write_bytes(side_record("fmt/1", record_id=ONE)[:-20])
    result = CliRunner().invoke(app, ["merge", str(index), str(side), "-o", str(tmp_path / "out")])
    assert result.exit_code == ExitCode.DAMAGED
    assert (tmp_path / "out" / "a.cdxj").read_text() == line() + "\n"


def test_of_many_faults_the_first_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    index, side = tmp_path / "a.cdxj", tmp_path / "a.meta.cdxj"
    index.write_text(line() + "\n")
    side.write_text("no line of a sidecar\n" * 1234 + side_line() + "\n")
    result = CliRunner().invoke(app, ["merge", str(index), str(side), "-o", str(tmp_path / "out")])
    assert result.exit_code == ExitCode.DAMAGED
    assert result.stderr.count("Broken: a.meta.cdxj, line ") == 20
    assert result.stderr.endswith("Broken, and not listed: 1,214 more.\n")


def test_an_input_is_never_written_over(tmp_path: Path) -> None:
    index = tmp_path / "a.cdxj"
    index.write_text(line() + "\n")
    with pytest.raises(UsageError, match="written over"):
        merge([index], [], tmp_path)
    # The sidecars' own directory: the merged lines took the name of what they were merged with.
    sides = tmp_path / "meta"
    sides.mkdir()
    (sides / "a.cdxj").write_text(side_line() + "\n")
    with pytest.raises(UsageError, match=r"meta/a\.cdxj would be written over"):
        merge([index], [sides / "a.cdxj"], sides)
    assert (sides / "a.cdxj").read_text() == side_line() + "\n"
    other = tmp_path / "b"
    other.mkdir()
    (other / "a.cdxj").write_text("")
    with pytest.raises(UsageError, match="both become"):
        merge([index, other / "a.cdxj"], [], tmp_path / "out")


def test_a_full_disk_leaves_no_output_that_looks_whole(tmp_path: Path) -> None:
    class FullDisk(Disk):
        def sync(self, descriptor: int) -> None:
            raise OSError(28, "No space left on device")

    index = tmp_path / "a.cdxj"
    index.write_text(line() + "\n")
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError):
        merge_job(MergeJob((index,), (), tmp_path / "out"), disk=FullDisk())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.cdxj.open"]
