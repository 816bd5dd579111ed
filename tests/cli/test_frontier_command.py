"""`amicrawl frontier`: files and directories looked into, made, compared; damage is named."""

from __future__ import annotations

import json
import math
import shutil
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import warm_processes
from meguri.format.frontier_files import empty_partition
from meguri.format.golden_dumps import VECTOR_FILES, golden_files, selected
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.cli.frontier.files import printed_pieces
from amicrawl.cli.frontier.lookup import Question, sentences
from amicrawl.config import Identity
from amicrawl.disk import Disk
from amicrawl.errors import (
    AmicrawlError,
    DamagedFileError,
    ExitCode,
    InputError,
    OutputError,
    UsageError,
)
from amicrawl.meguri import dump_pieces
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Codec, Partition, columns_of
from amicrawl.meguri.format.strings import ArenaBuilder, pack_robots, string_at
from amicrawl.meguri.format.verification import read_partition
from amicrawl.meguri.format.writer import WriteOptions, write_partition
from amicrawl.urls import UrlKey, host_key, seed_key, url_key

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 480_000
URL = "https://example.com/a?b=1"
SEEDED = "http://Example.com/Seeded"
EXACT = "https://example.com/a?utm_source=x"
HOSTILE = "https://example.com/\x1b[2J\u202e"


def run(*arguments: object) -> str:
    """Return what the command prints; an error of ours is raised."""
    result = CliRunner().invoke(app, ["frontier", *map(str, arguments)])
    if isinstance(result.exception, AmicrawlError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def as_json(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return found


def rows_of(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--json").splitlines()]


def _row(strings: ArenaBuilder, url: str, key: UrlKey, **fields: float) -> np.ndarray:
    row = np.zeros(1, ROW)
    row["host_key"], row["path_key"] = key
    annex = b'{"x":{"tag":"news"}}' if url == URL else None
    row["url_ref"] = strings.add(url.encode("utf-8", "surrogateescape"), annex)
    for name, value in fields.items():
        row[name] = value
    return row


def crawled() -> Partition:
    """Return five rows of a host: one crawled, one gone, one seeded by other software, two waiting."""
    strings = ArenaBuilder()
    found = [
        _row(
            strings, URL, url_key(URL, Identity.CANONICAL), status=4, next_due=NOW + 100, crawl_count=3
        ),
        _row(strings, SEEDED, seed_key(SEEDED), status=1, next_due=0),
        _row(strings, EXACT, url_key(EXACT, Identity.EXACT), status=6, last_crawled=NOW - 24 * 100),
        _row(strings, HOSTILE, UrlKey(host_key("example.com"), 5), status=1, next_due=NOW - 3),
        _row(strings, "https://example.com/t", UrlKey(host_key("example.com"), 9), status=8),
    ]
    found[0]["last_crawled"] = NOW - 68
    found[0]["http_status"] = 200
    found[0]["priority"] = 0.7
    rows = np.sort(np.concatenate(found), order=["host_key", "path_key"])
    host = np.zeros(1, HOST_ROW)
    host["host_key"] = host_key("example.com")
    host["host_ref"] = host["registrable_ref"] = strings.add(b"example.com")
    host["robots_ref"] = strings.add(pack_robots(b"User-agent: *\nDisallow: /x", Codec.ZSTD))
    host["robots_fetched"], host["robots_expiry"] = NOW - 1, NOW + 23
    host["crawl_delay"], host["flags"], host["url_count"] = 15, 2, 5
    host["host_next_eligible"] = NOW * 3600 + 90
    partition = empty_partition()
    partition.urls, partition.hosts, partition.arena = (
        columns_of(rows),
        columns_of(host),
        strings.arena(),
    )
    partition.meta = ((b"amicrawl.identity", b"canonical"), (b"note\x1b", b"\xff\n"))
    partition.created = NOW
    return partition


def write(partition: Partition, path: Path, **options: Any) -> Path:
    write_partition(partition, path, options=WriteOptions(codec=Codec.NONE, **options), disk=Disk())
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(crawled(), tmp_path / "f.meguri", schedule=True)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a crawl's output directory."""
    (tmp_path / "ami-out" / "frontier").mkdir(parents=True)
    write(crawled(), tmp_path / "ami-out" / "frontier" / "snap-1.meguri", schedule=True)
    return tmp_path / "ami-out"


def test_inspect_prints_what_the_reference_prints_and_the_dates(file: Path) -> None:
    lines = run("inspect", file).splitlines()
    assert lines[0] == "meguri v1.0  partition 0"
    assert "  urls           5" in lines
    assert "  flags          sorted|schedule|blob" in lines
    assert "    note\\x1b = \\xff\\n" in lines
    assert "  made           2024-10-04T00:00:00Z" in lines
    found = as_json("inspect", file)
    assert (found["urls"], found["codec"], found["next_due_hours"]) == (5, "none", [NOW - 3, NOW + 100])


def test_inspect_says_which_file_of_a_directory_cannot_be_looked_at(directory: Path) -> None:
    (directory / "frontier" / "log-9").symlink_to("gone")
    with pytest.raises(InputError, match=r"frontier/log-9 cannot be read: No such file"):
        run("inspect", directory)


def test_inspect_agrees_with_every_golden_file() -> None:
    for path, said, _ in golden_files():
        assert run("inspect", path).startswith(said["inspect"])


def test_inspect_of_a_directory_lists_its_files(directory: Path) -> None:
    shown = run("inspect", directory)
    assert "snap-1.meguri:\nmeguri v1.0" in shown
    found = as_json("inspect", directory)
    assert list(found["files"]) == ["snap-1.meguri"]
    assert found["snapshot"]["urls"] == 5


def test_stats_count_a_file_by_state(file: Path) -> None:
    lines = run("stats", file).splitlines()
    assert lines[0] == f"partition {file} (cold, footer summary)"
    assert "  urls           5" in lines
    assert "  scheduled      2" in lines
    assert "  schedule index true   seen filter false" in lines
    assert as_json("stats", file)["by_status"] == {"scheduled": 2, "crawled": 1, "gone": 1, "trapped": 1}


def test_stats_of_a_directory_say_what_is_due(directory: Path) -> None:
    lines = run("stats", directory, "--at", NOW).splitlines()
    assert lines[0] == f"partition {directory} (live)"
    assert lines[1:6] == [
        "  urls           5",
        "  hosts          1",
        "  pending        2",
        "  due now        2",
        "  next due       2024-10-08 04:00 UTC",
    ]


def test_an_hour_of_thousands_of_digits_is_refused_in_words(directory: Path) -> None:
    result = CliRunner().invoke(app, ["frontier", "stats", str(directory), "--at", "9" * 5_000])
    assert result.exit_code == 2
    assert "is not between 1970 and 9999" in result.output
    assert len(result.output) < 1_000


def test_schedule_of_a_file_shows_every_row_with_a_time(file: Path) -> None:
    lines = run("schedule", file, "--before", NOW).splitlines()
    way = "durable schedule wheel (near buckets only)"
    assert lines[0] == f"schedule {file} (cold, {way}) due at or before hour {NOW}: 1"
    assert lines[1].startswith(f"  0x{host_key('example.com'):016x}:0x0000000000000005  hour {NOW - 3}")
    assert len(rows_of("schedule", file, "--before", NOW + 100)) == 2
    assert rows_of("schedule", file, "--before", NOW, "--host", "0x5") == []
    plain = write(crawled(), file.with_name("plain.meguri"))
    assert "(cold, next_due column scan)" in run("schedule", plain, "--before", NOW)


def test_a_time_is_a_date_a_moment_or_hours_since_1970(file: Path) -> None:
    by_hour = run("schedule", file, "--before", NOW)
    assert run("schedule", file, "--before", "2024-10-04") == by_hour
    assert run("schedule", file, "--before", "2024-10-04T02:30+02:00") == by_hour
    assert run("schedule", file, "--before", "2024-10-03T23:59Z") != by_hour
    for wrong in ("tomorrow", "-1", "9999999999", "٣"):
        result = CliRunner().invoke(app, ["frontier", "schedule", str(file), f"--before={wrong}"])
        assert result.exit_code == 2, wrong


def test_schedule_of_a_directory_shows_what_a_crawl_would_take(directory: Path) -> None:
    lines = run("schedule", directory, "--before", NOW).splitlines()
    assert lines[0] == f"schedule {directory} (live) due by 2024-10-04 00:00 UTC: 2 of 2 shown"
    assert lines[1] == f"  at once               {SEEDED}"
    assert lines[2].startswith("  2024-10-03 21:00 UTC  https://example.com/")
    assert len(run("schedule", directory, "--before", NOW + 200, "--limit", 1).splitlines()) == 3


def test_ls_can_be_narrowed(directory: Path, file: Path) -> None:
    for path in (file, directory):
        assert len(run("ls", path).splitlines()) == 5
        (line,) = run("ls", path, "--status", "gone").splitlines()
        assert line == f"gone             no time               {EXACT}"
        assert len(rows_of("ls", path, "--host", host_key("example.com"))) == 4
        assert run("ls", path, "--limit", 2).endswith(
            "... and 3 more; --limit says how many are shown\n"
        )
    with pytest.raises(UsageError, match="not a state of a row"):
        run("ls", file, "--status", "lost")
    with pytest.raises(UsageError, match="not a state of a row"):
        run("ls", file, "--status", "1" * 5000)
    with pytest.raises(UsageError, match="neither a state nor an HTTP status"):
        run("retry", file.parent, "--status", "1" * 5000)
    with pytest.raises(UsageError, match="not a host key"):
        run("ls", file, "--host", "example.com")


@pytest.mark.parametrize(
    ("url", "convention"),
    [
        (URL, "canonical form"),
        ("HTTPS://EXAMPLE.com:443/a?b=1#top", "canonical form"),
        (EXACT, "URL as written"),
        (SEEDED, "host and remainder, cut but not normalised"),
    ],
)
def test_show_finds_a_url_by_every_convention_and_says_by_which(
    file: Path, directory: Path, url: str, convention: str
) -> None:
    for path in (file, directory):
        found = as_json("show", path, url)
        assert found["matched_by"] == convention
        assert f"matched by its {convention}\n" in run("show", path, url)


def test_show_decodes_every_field(file: Path) -> None:
    found = as_json("show", file, URL)
    row, host = found["row"], found["host"]
    assert set(ROW.names or ()) <= set(row)
    assert set(HOST_ROW.names or ()) <= set(host)
    assert (row["url"], row["status_name"], row["priority"]) == (URL, "crawled", 0.7)
    assert (row["next_due"], row["next_due_at"]) == (NOW + 100, "2024-10-08T04:00:00Z")
    assert row["url_annex"] == {"x": {"tag": "news"}}
    assert (host["host"], host["flag_names"]) == ("example.com", ["robots.txt missing"])
    assert host["robots"] == "User-agent: *\nDisallow: /x"
    shown = run("show", file, URL)
    assert "  next_due              480100  (2024-10-08T04:00:00Z)" in shown
    assert "  robots                User-agent: *\\nDisallow: /x" in shown


def test_a_url_that_is_not_there_is_said_with_the_keys_looked_for(file: Path) -> None:
    with pytest.raises(
        InputError, match=r"has no row for .*0x[0-9a-f]{16}:0x[0-9a-f]{16} \(canonical form\)"
    ):
        run("show", file, "https://example.com/none")


@pytest.mark.parametrize(
    ("url", "due", "says"),
    [
        (URL, False, "It is crawled and due from 2024-10-08 04:00 UTC on, in 4 days: not yet."),
        (URL, False, "It was crawled 3 times, last 2024-10-01 04:00-05:00 UTC, response 200."),
        (URL, False, "The host's gate is shut until 2024-10-04T00:01:30Z."),
        (URL, False, "Between two requests to it 1.5 s must pass."),
        (
            URL,
            False,
            "Its robots.txt was fetched 2024-10-03 23:00-24:00 UTC and expires 2024-10-04 23:00 UTC.",
        ),
        (SEEDED, True, "It is scheduled without a time, so it is due at once."),
        (SEEDED, True, "Its canonical form is http://example.com/Seeded."),
        (EXACT, False, "It is gone and has no time to come back, so it is not handed out again."),
        ("https://example.com/none", False, "There is no row for it, under any reading"),
        ("mailto:x@y", False, "It has no canonical form: its scheme is neither http nor https."),
    ],
)
def test_explain_says_why_a_url_is_or_is_not_due(
    directory: Path, file: Path, url: str, due: bool, says: str
) -> None:
    for path in (file, directory):
        assert says in run("explain", path, url, "--at", NOW)
        found = as_json("explain", path, url, "--at", NOW)
        assert found["due"] is due
        assert len(found["keys"]) == 3


def test_nothing_in_a_file_reaches_the_terminal_raw(file: Path, directory: Path) -> None:
    commands: Sequence[Sequence[object]] = (
        ("ls",),
        ("schedule", "--before", NOW),
        ("inspect",),
        ("stats",),
        ("verify",),
    )
    for path in (file, directory):
        for name, *options in commands:
            for json_option in ((), ("--json",)):
                shown = run(name, path, *options, *json_option)
                assert "\x1b" not in shown
                assert "\u202e" not in shown


def test_a_sound_file_is_called_sound(file: Path, directory: Path) -> None:
    assert run("verify", file) == f"{file} is sound\n"
    assert f"{directory} is sound\n" in run("verify", directory)
    assert as_json("verify", file) == {"path": str(file), "sound": True, "findings": [], "notes": []}


def test_what_the_format_allows_and_ours_never_have_is_a_note(tmp_path: Path) -> None:
    partition = crawled()
    partition.urls = {name: np.repeat(column, 2) for name, column in partition.urls.items()}
    path = write(partition, tmp_path / "twice.meguri", equal_keys=True)
    shown = run("verify", path)
    assert shown.startswith(f"note: {path}, byte ")
    assert shown.endswith(" is sound\n")


def test_every_finding_is_named_with_file_byte_and_region(file: Path) -> None:
    octets = bytearray(file.read_bytes())
    for at in (100, 2000):
        octets[at] ^= 1
    file.write_bytes(octets)
    result = CliRunner().invoke(app, ["frontier", "verify", str(file)])
    assert result.exit_code == 5
    *findings, last = result.output.splitlines()
    assert len(findings) == 2
    assert findings[0].startswith(f"{file}, byte ")
    assert ": url_table.host_key: " in findings[0]
    assert ": schedule: " in findings[1]
    assert last == f"{file} is damaged: 2 finding(s)"
    result = CliRunner().invoke(app, ["frontier", "verify", str(file), "--json"])
    told = json.loads(result.output)
    assert (told["sound"], [found["fault"] for found in told["findings"]]) == (False, ["checksum"] * 2)


def test_a_torn_log_is_a_note_and_a_changed_one_is_damage(directory: Path) -> None:
    log = directory / "frontier" / "log-2"
    log.write_bytes(b"\1\2\3")
    assert f"note: {log} counts up to byte 0" in run("verify", directory)
    (directory / "frontier" / "snap-1.meguri").write_bytes(b"MEG1")
    result = CliRunner().invoke(app, ["frontier", "verify", str(directory)])
    assert result.exit_code == 5
    assert "snap-1.meguri, byte 0: header: " in result.output


def test_pack_makes_one_file_of_a_directory(directory: Path, tmp_path: Path) -> None:
    out = tmp_path / "packed.meguri"
    assert (
        run("pack", directory, "-o", out)
        == f"packed {directory} -> {out} ({out.stat().st_size} bytes)\n"
    )
    found = as_json("inspect", out)
    assert (found["urls"], found["codec"]) == (5, "zstd")
    assert "schedule" in found["flags"]
    assert as_json("pack", directory)["path"] == str(directory / "pack.meguri")
    with pytest.raises(InputError, match="is not a directory"):
        run("pack", out)


@pytest.mark.parametrize("command", ["pack", "compact"])
def test_a_file_without_compression_has_no_compressed_robots_body(command: str, tmp_path: Path) -> None:
    """The format has such bodies follow the codec of their file, so other software would not read it."""
    partition, body = crawled(), b"Disallow: /x\n" * 100
    strings = bytearray(partition.arena)
    partition.hosts["robots_ref"][0] = len(strings)
    packed = pack_robots(body, Codec.ZSTD)
    partition.arena = bytes([*strings, len(packed), *packed])
    place = tmp_path / "frontier"
    place.mkdir()
    file = write(partition, place / "snap-1.meguri")
    out = tmp_path / "out.meguri"
    run(command, place if command == "pack" else file, "-o", out, "--codec", "none")
    written = read_partition(out)
    assert string_at(written.arena, int(written.hosts["robots_ref"][0])) == b"\1" + body


def test_compact_keeps_what_was_found_gone_within_the_horizon_whenever_it_was_captured(
    tmp_path: Path,
) -> None:
    """A response that says no leaves a row its last capture, or none, and when it is due again."""
    hour, weeks = int(time.time()) // 3600, 7 * 24
    strings, gone = ArenaBuilder(), {"status": 6, "http_status": 404, "retry_count": 1}
    found = [
        ("https://example.com/never-there", {"first_seen": hour - 1, "next_due": hour + 2 * weeks - 1}),
        ("https://example.com/was-there", {"last_crawled": 9, "next_due": hour + 2 * weeks - 1}),
        ("https://example.com/long-gone", {"first_seen": 9, "next_due": hour - 50 * weeks}),
    ]
    rows = [_row(strings, url, url_key(url, Identity.EXACT), **gone, **more) for url, more in found]
    partition = crawled()
    partition.urls = columns_of(np.sort(np.concatenate(rows), order=["host_key", "path_key"]))
    partition.arena = strings.arena()
    partition.hosts = columns_of(np.zeros(0, HOST_ROW))
    file, out = write(partition, tmp_path / "f.meguri"), tmp_path / "o.meguri"
    assert as_json("compact", file, "--gc", "--older-than", 90, "-o", out)["gone_dropped"] == 1
    assert {row["url"] for row in rows_of("ls", out)} == {url for url, _ in found[:2]}


def test_compact_keeps_gone_rows_unless_told(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "compact.meguri"
    assert run("compact", file) == (
        f"compacted 1 file(s) -> {out}: 5 urls, {out.stat().st_size} bytes "
        "(use --gc to drop Gone tombstones)\n"
    )
    assert "seen_filter" not in run("diff", file, out)
    gone = tmp_path / "gc.meguri"
    assert f"{gone}: 4 urls (1 Gone dropped), " in run("compact", file, "--gc", "-o", gone)
    (facts,) = rows_of("diff", file, gone)
    assert (facts["what"], facts["name"]) == ("removed", EXACT)


def test_compact_writes_beside_the_directory_that_it_is_started_in(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    assert f"-> {directory.parent / 'compact.meguri'}: 5 urls" in run("compact", ".")


@pytest.mark.parametrize("words", [("pack", "-o", "."), ("export", "-o", "/"), ("compact", "-o", "")])
def test_a_directory_as_output_is_refused(directory: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(OutputError, match="it is a directory"):
        run(words[0], directory, *words[1:])


@pytest.mark.parametrize(
    "words", [("stats",), ("ls",), ("export",), ("verify",), ("retry",), ("show", URL)]
)
@pytest.mark.parametrize("place", ["", "frontier"])
def test_the_frontier_before_a_crawl_in_several_processes_is_not_taken_for_theirs(
    directory: Path, place: str, words: tuple[str, ...]
) -> None:
    part = directory / "processes" / "0"
    shutil.copytree(directory / "frontier", part / "frontier")
    (directory / "processes" / "plan.json").write_text("{}")
    with pytest.raises(InputError, match=f"has not ended.* such as {part}"):
        run(words[0], directory / place, *words[1:])
    assert "urls           5" in run("stats", part)


def test_a_footer_with_no_number_prints_json_all_the_same(file: Path) -> None:
    with FrontierFile.open(file) as opened:
        written = struct.pack("<f", opened.stats.bytes_per_url)
    content = file.read_bytes()
    length = struct.unpack_from("<I", content, len(content) - 12)[0]
    regions, footer = content[: -12 - length], content[-12 - length : -12]
    footer = footer.replace(written, struct.pack("<f", math.nan))
    trailer = struct.pack("<II", length, crc32c(footer)) + b"MEG1"
    file.write_bytes(regions + footer + trailer)
    for words in (("stats", file), ("inspect", file)):
        assert json.loads(run(*words, "--json"), parse_constant=pytest.fail)["bytes_per_url"] == "nan"


def test_retry_counts_what_is_due_now(directory: Path) -> None:
    assert as_json("retry", directory, "--status", "gone") == {"path": str(directory), "urls": 1}
    assert as_json("retry", directory, "--status", "gone")["urls"] == 0


def test_compact_forgets_only_what_went_before_the_horizon(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.meguri"
    assert as_json("compact", file, "--gc", "--older-than", 10**5, "-o", out)["gone_dropped"] == 0
    assert as_json("compact", file, "--gc", "--older-than", 10, "-o", out)["gone_dropped"] == 1
    with pytest.raises(UsageError, match="--gc"):
        run("compact", file, "--older-than", 10)


def test_files_that_share_hosts_are_not_made_one(file: Path) -> None:
    with pytest.raises(InputError, match="share a range of host keys"):
        run("compact", file, file)


def test_export_prints_strings_piece_by_piece_however_long_their_line_is() -> None:
    partition = crawled()
    partition.arena = bytes(8 << 20)
    pieces = list(printed_pieces(partition))
    assert max(map(len, pieces)) <= 2 << 20
    assert "".join(pieces).encode() == b"".join(dump_pieces(partition)).replace(b"\x7f", b"\\u007f")


def test_export_and_import_give_the_same_bytes(file: Path, tmp_path: Path) -> None:
    dump, again = tmp_path / "dump.json", tmp_path / "again.meguri"
    assert run("export", file, "-o", dump) == ""
    assert run("export", file) == dump.read_text()
    said = run("import", dump, "-o", again, "--codec", "none", "--schedule")
    assert said == f"imported 5 urls, 1 hosts into {again}, {again.stat().st_size} bytes\n"
    assert again.read_bytes() == file.read_bytes()
    assert run("diff", file, again) == "no difference\n"


def test_a_selected_golden_dump_imports_as_its_file(tmp_path: Path) -> None:
    said = selected("golden-none-sched.meguri")
    (tmp_path / "d.json").write_text(json.dumps(said["dump"]))
    run("import", tmp_path / "d.json", "-o", tmp_path / "f", "--codec", "none", "--schedule")
    assert (tmp_path / "f").stat().st_size == 5611
    run("export", tmp_path / "f", "-o", tmp_path / "e.json")
    assert json.loads((tmp_path / "e.json").read_text()) == said["dump"]


def test_a_golden_file_of_each_way_to_write_goes_out_and_in(tmp_path: Path) -> None:
    dump, again = tmp_path / "d.json", tmp_path / "f.meguri"
    each_way = {
        str(said["write_options"]): (path, said, expected) for path, said, expected in golden_files()
    }
    assert len(each_way) > 3
    for path, said, expected in each_way.values():
        run("export", path, "-o", dump)
        assert json.loads(dump.read_text()) == expected, path.name
        given = said["write_options"]
        options = ["--schedule"] if given["schedule"] else []
        options += ["--codec", Codec(given["codec"]).name.lower()]
        run("import", dump, "-o", again, "--max-page-rows", given["max_page_rows"], *options)
        if given["codec"] == 0:
            assert again.read_bytes() == path.read_bytes(), path.name
        else:
            assert run("diff", path, again) == "no difference\n"


def test_diff_shows_what_changed_in_words(file: Path, tmp_path: Path) -> None:
    changed = crawled()
    at = changed.urls["status"].tolist().index(4)
    changed.urls["depth"][at] = 3
    changed.partition_id = 7
    other = write(changed, tmp_path / "other.meguri")
    key = f"0x{host_key('example.com'):016x}:0x{url_key(URL, Identity.CANONICAL).path:016x}"
    assert run("diff", file, other).splitlines() == [
        "head: partition_id 0 -> 7",
        f"changed URL row {key} {URL}",
        "  depth: 0 -> 3",
        "0 added, 0 removed, 1 changed",
    ]
    assert rows_of("diff", file, other)[1]["fields"] == {"depth": [0, 3]}


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    "what",
    ["nothing", "cut", "other bytes", "a dump", "a later version", "an empty directory", "missing"],
)
def test_diff_says_which_of_the_two_cannot_be_read(
    file: Path, tmp_path: Path, what: str, side: int
) -> None:
    whole, odd = file.read_bytes(), tmp_path / "odd"
    content = {
        "nothing": b"",
        "cut": whole[:-30],
        "other bytes": bytes(range(256)) * 20,
        "a dump": run("export", file).encode(),
        "a later version": whole[:4] + b"\x09" + whole[5:],
    }
    if what == "an empty directory":
        odd.mkdir()
    elif what in content:
        odd.write_bytes(content[what])
    given = [file, file]
    given[side] = odd
    with pytest.raises(AmicrawlError, match=f"^{odd}") as raised:
        run("diff", *given)
    assert raised.value.exit_code == (ExitCode.DAMAGED if what in content else ExitCode.INPUT)


def test_a_frontier_does_not_differ_from_itself_and_from_none_by_all_its_rows(
    file: Path, tmp_path: Path
) -> None:
    none = write(empty_partition(), tmp_path / "none.meguri")
    assert run("diff", file, file) == run("diff", none, none) == "no difference\n"
    rows, hosts = len(crawled().urls["status"]), len(crawled().hosts["host_key"])
    assert run("diff", none, file).splitlines()[-1] == f"{rows + hosts} added, 0 removed, 0 changed"
    assert run("diff", file, none).splitlines()[-1] == f"0 added, {rows + hosts} removed, 0 changed"


def test_map_shows_a_directory_and_its_manifest_alike(tmp_path: Path) -> None:
    partition = crawled()
    partition.host_key_hi = 2**63
    write(partition, tmp_path / "p1.meguri")
    manifest = tmp_path / "manifest"
    shown = run("map", tmp_path, "-o", manifest)
    assert shown.splitlines()[0] == "partition map (1 partitions)"
    assert "p1.meguri" in shown
    assert shown.endswith("  coverage gap [0x8000000000000001, 0xffffffffffffffff]\n")
    assert run("map", manifest) == shown
    assert run("map", manifest, "--host", "5") == "host 0x0000000000000005 -> partition 0 (p1.meguri)\n"
    assert run("map", manifest, "--host", hex(2**64 - 1)).endswith("-> no owning partition\n")
    assert as_json("map", manifest)["flaws"][0]["lo"] == "0x8000000000000001"


def test_a_frontier_in_several_files_is_looked_into_as_one(file: Path, tmp_path: Path) -> None:
    divided = tmp_path / "divided" / "f.meguri"
    divided.parent.mkdir()
    partition = read_partition(file)
    options = WriteOptions(most_strings=len(partition.arena) // 3 + 1)
    write_partition(partition, divided, options=options, disk=Disk())
    names = sorted(path.name for path in divided.parent.iterdir())
    assert names == ["f.meguri", *(f"f.strings-{number}.meguri" for number in (1, 2))]
    for command in (["ls", "--limit", "0"], ["show", URL], ["export"]):
        arguments = [command[0], "{}", *command[1:]]
        one, several = (
            run(*(str(path) if word == "{}" else word for word in arguments)).replace(str(path), "")
            for path in (file, divided)
        )
        assert one == several
    assert run("diff", file, divided) == run("diff", file, file)
    assert run("verify", divided)
    assert "amicrawl.strings = " in run("inspect", divided)
    assert run("map", divided.parent).startswith("partition map (1 partitions)")
    divided.with_name("f.strings-2.meguri").unlink()
    with pytest.raises(DamagedFileError, match=r"go on in f\.strings-2\.meguri, which is missing"):
        run("ls", divided)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("inspect {empty}/none.meguri", InputError),
        ("export {empty}", InputError),
        ("map {empty}", InputError),
        ("import {empty}/none.json -o {empty}/x", InputError),
        ("export {file} -o {empty}/nowhere/x.json", OutputError),
        ("import {dump} -o {empty}/nowhere/x", OutputError),
        ("ls {cut}/f.meguri", DamagedFileError),
        ("map {cut}", DamagedFileError),
        ("map {cut}/f.meguri", DamagedFileError),
    ],
)
def test_each_failure_is_of_its_kind(
    file: Path, tmp_path: Path, arguments: str, error: type[AmicrawlError]
) -> None:
    dump, cut, empty = (tmp_path / name for name in ("dump.json", "cut", "empty"))
    run("export", file, "-o", dump)
    cut.mkdir()
    empty.mkdir()
    (cut / "f.meguri").write_bytes(file.read_bytes()[:-1])
    with pytest.raises(error):
        run(*(word.format(file=file, dump=dump, cut=cut, empty=empty) for word in arguments.split()))


def test_golden_damage_ends_with_a_sentence_that_names_file_byte_and_region() -> None:
    lines = (VECTOR_FILES / "damaged" / "damaged.jsonl").read_text().splitlines()
    refused = 0
    for line in lines:
        said = json.loads(line)
        path = VECTOR_FILES / "damaged" / said["file"]
        if said["class"] == "manifest" or said["error_class"] == "none":
            continue
        result = CliRunner().invoke(app, ["frontier", "verify", str(path)])
        assert result.exit_code == 5, path.name
        assert result.output.startswith(f"{path}, byte "), path.name
        refused += 1
    assert refused > 50


def test_directories_of_the_reference_can_be_looked_into() -> None:
    for directory in sorted((VECTOR_FILES / "store").iterdir()):
        recorded = as_json("stats", directory)
        assert len(rows_of("ls", directory, "--limit", 0)) == recorded["urls"]


def test_the_command_itself_ends_with_the_code_and_a_sentence(file: Path, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("amicrawl")
    cut = tmp_path / "cut.meguri"
    cut.write_bytes(file.read_bytes()[:-1])
    for arguments, code, says in (
        (("stats", file), 0, ""),
        (("inspect", cut), 5, f"amicrawl: {cut}, byte "),
        (("export", tmp_path / "none"), 3, "amicrawl: "),
    ):
        done = warm_processes.run(
            [command, "frontier", *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert done.stderr.startswith(says)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("due_in", "says"),
    [(120, "in 2 min: not yet."), (1, "in 1 s: not yet."), (-60, "for 60 s."), (-3 * 3600, "for 3 h.")],
)
def test_how_long_until_a_url_is_due_is_not_rounded_to_hours(due_in: int, says: str) -> None:
    row = {
        **dict.fromkeys(("host_key", "path_key", "row", "retry_count", "error_count"), 0),
        **dict.fromkeys(("crawl_count", "change_count", "depth", "http_status"), 0),
        "source_name": "seed",
        "status": 1,
        "status_name": "scheduled",
        "next_due": 480_000,
    }
    requested = Question("http://a.example/", "http://a.example/", None, 480_000 * 3600 - due_in)
    assert any(each.endswith(says) for each in sentences(requested, "URL as written", row, None).says)


def test_no_frontier_is_rebuilt_where_nothing_was_crawled(tmp_path: Path) -> None:
    """A directory that was named by mistake would become a crawl of no URLs."""
    with pytest.raises(InputError, match="holds no crawl"):
        run("rebuild", tmp_path)
    assert not list(tmp_path.iterdir())
