"""What a crawl refuses, it refuses by its exit code and in a sentence: what, where, what to do."""

from __future__ import annotations

import gzip
import json
import os
import resource
from typing import TYPE_CHECKING

import pytest
import warm_processes
from archive_reading import check_sealed, rows
from loopback import PROJECT, RawServer, command, crawl, crawl_site, environment, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def one_line(stderr: str) -> str:
    """Return what amicrawl said of its end; there must be one such line and no traceback."""
    assert "Traceback" not in stderr, stderr
    (line,) = [line for line in map(json.loads, stderr.splitlines()) if line.get("event") == "failed"]
    message: str = line["message"]
    return message


def test_a_missing_seed_file(tmp_path: Path) -> None:
    done = crawl(tmp_path / "nowhere.txt", tmp_path / "out")
    assert done.returncode == ExitCode.INPUT
    assert "nowhere.txt does not exist" in one_line(done.stderr)
    assert not (tmp_path / "out").exists(), "nothing is made for a crawl that cannot start"


def test_a_seed_list_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "seeds.parquet").write_bytes(b"not parquet at all, but long enough to look like a file")
    done = crawl(tmp_path / "seeds.parquet", tmp_path / "out")
    assert done.returncode == ExitCode.INPUT
    assert "seeds.parquet" in one_line(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (["format=josnl"], {}, ["josnl", "jsonl"]),
        (["fromat=jsonl"], {}, ["fromat", "Did you mean format?"]),
        ([], {"AMICRAWL_DELEY": "1"}, ["AMICRAWL_DELEY", "Did you mean AMICRAWL_DELAY?"]),
        ([], {"AMICRAWL_DELAY": "soon"}, ["AMICRAWL_DELAY", "'soon'", "number"]),
        ([], {"AMICRAWL_ALLOW_PRIVATE": "127.0.0.999"}, ["AMICRAWL_ALLOW_PRIVATE", "127.0.0.999"]),
        (["run_id=../up"], {}, ["RUN_ID", "../up"]),
    ],
)
def test_a_wrong_argument_or_setting(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], words: list[str]
) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", ["http://127.0.0.1:9/"])
    done = crawl(seeds, tmp_path / "out", arguments=arguments, settings=settings)
    assert done.returncode == ExitCode.USAGE
    line = one_line(done.stderr)
    assert all(word in line for word in words), line


def test_an_output_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file stands where the directory should be")
    seeds = write_lines(tmp_path / "seeds.txt", ["http://127.0.0.1:9/"])
    done = crawl(seeds, tmp_path / "out")
    assert done.returncode == ExitCode.OUTPUT
    assert str(tmp_path / "out") in one_line(done.stderr)


def test_a_disk_that_fills_up_stops_the_crawl_and_leaves_whole_files(tmp_path: Path) -> None:
    body = os.urandom(20_000)
    with RawServer(lambda _: page(body), keep_open=True) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/{n}" for n in range(400)])
        done = warm_processes.run(
            command(seeds, tmp_path / "out", settings={"AMICRAWL_WARC_SIZE": "500000"}),
            cwd=PROJECT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            preexec_fn=_small_files(300_000),
        )
    assert done.returncode == ExitCode.OUTPUT, done.stderr
    assert "ami-0000" in one_line(done.stderr)
    assert "ulimit -f" in done.stderr, "it is no lack of disk space"
    for path in (tmp_path / "out").glob("*.warc.gz"):
        check_sealed(path)


def _small_files(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_bad_lines_are_reported_counted_and_skipped(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"hello")) as server:
        seeds = tmp_path / "seeds.jsonl"
        seeds.write_text(
            f'{{"url": "{server.url}/a"}}\nnot json\n{{"url": 7}}\n{{"url": "{server.url}/b"}}\n'
        )
        easy = crawl(seeds, tmp_path / "easy")
        strict = crawl(seeds, tmp_path / "strict", arguments=["strict=1"])
    assert easy.returncode == ExitCode.DONE
    assert f"{seeds}, line 2" in easy.stderr
    assert f"{seeds}, line 3" in easy.stderr
    assert strict.returncode == ExitCode.SEEDS_BAD
    assert sorted(row["status"] for row in rows(tmp_path / "strict")) == [0, 0, 200, 200]


@pytest.mark.parametrize("processes", [1, 2])
def test_of_a_list_that_is_cut_the_whole_lines_are_crawled_and_the_end_says_so(
    tmp_path: Path, processes: int
) -> None:
    lines = [f"/{number}-{os.urandom(9).hex()}" for number in range(60)]
    seeds, out = tmp_path / "seeds.txt.gz", tmp_path / "out"
    with RawServer(lambda _: page(b"hello")) as server:
        packed = gzip.compress("".join(f"{server.url}{line}\n" for line in lines).encode())
        seeds.write_bytes(packed[: len(packed) // 2])
        cut = crawl(seeds, out, arguments=[f"processes={processes}"])
        before = [row["url"].removeprefix(server.url) for row in rows(out)]
        seeds.write_bytes(packed)
        whole = crawl(seeds, out, arguments=[f"processes={processes}"])
    assert cut.returncode == ExitCode.INPUT, cut.stderr
    assert "is cut: it ends inside its gzip data. Get a complete copy." in one_line(cut.stderr)
    assert 5 < len(before) < 60
    assert sorted(before) == sorted(lines[: len(before)])
    assert json.loads((out / "crawl.json").read_bytes())["finish_reason"] == "finished"
    assert whole.returncode == ExitCode.DONE, whole.stderr
    assert len(rows(out)) == 60


def test_a_site_is_not_crawled_from_start_urls_that_are_cut(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt.gz"
    packed = gzip.compress(
        "".join(f"http://{n}.test/{os.urandom(9).hex()}\n" for n in range(60)).encode()
    )
    seeds.write_bytes(packed[: len(packed) // 2])
    done = crawl_site("http://a.test/", tmp_path / "out", arguments=[f"file={seeds}"])
    assert done.returncode == ExitCode.INPUT, done.stderr
    assert "is cut: it ends inside its gzip data. Get a complete copy." in done.stderr
    assert not (tmp_path / "out" / "captures.parquet").exists()


def test_a_seed_list_without_a_single_good_line_is_unreadable(tmp_path: Path) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", ["gopher://old", "no address"])
    done = crawl(seeds, tmp_path / "out")
    assert done.returncode == ExitCode.INPUT, done.stderr
    assert "seeds.txt" in one_line(done.stderr)


def test_a_private_address_is_refused_unless_allowed(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"secret")) as server:
        seeds = write_lines(
            tmp_path / "seeds.txt", [f"{server.url}/", f"http://localhost:{server.port}/"]
        )
        done = crawl(seeds, tmp_path / "out", settings={"AMICRAWL_ALLOW_PRIVATE": ""})
        requested = list(server.requests)
    assert done.returncode == ExitCode.UNREACHED
    assert requested == []
    assert {row["error"].partition(":")[0] for row in rows(tmp_path / "out")} == {"address-refused"}


def test_files_of_the_machine_are_not_crawlable(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"", "Location: file:///etc/passwd", status="302 Found")) as server:
        done = crawl(write_lines(tmp_path / "s.txt", [server.url + "/"]), tmp_path / "out")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert [row["status"] for row in rows(tmp_path / "out")] == [302]
