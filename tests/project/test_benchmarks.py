"""The benchmarks measure what they say, and a crawler that brings too little home does not count."""

from __future__ import annotations

import gzip
import json
import socket
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from warcio.warcwriter import WARCWriter

from benchmarks.contents import response_urls
from benchmarks.crawlers import Amicrawl
from benchmarks.measure import run
from benchmarks.pages import Pages
from benchmarks.record import append_ours, append_with_warcio, captures
from benchmarks.report import summary, table
from benchmarks.rounds import Round, Server, play
from benchmarks.server import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.measure import Cost

PROJECT = Path(__file__).parents[2]


def cost_of(tmp_path: Path, *words: str, timeout: float = 60.0) -> Cost:
    command = [sys.executable, "-c", *words]
    return run(command, cwd=tmp_path, env={}, log=tmp_path / "log", timeout=timeout)


def write_warc(path: Path, urls: Sequence[str]) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for url in urls:
            for kind in ("response", "request"):
                writer.write_record(writer.create_warc_record(url, kind, length=0))


def test_pages_are_alike_in_size_and_ratio_and_all_different() -> None:
    made = Pages()
    pages = [made.page(number) for number in (0, 1, 2, 999, 4096, 4097, 20_000, 123_456)]
    assert len(set(pages)) == len(pages)
    # Without the lines that bear the number, too.
    assert len({page[400:-200] for page in pages}) == len(pages)
    assert all(24_000 < len(page) < 28_000 for page in pages)
    ratios = [len(page) / len(gzip.compress(page, 6)) for page in pages]
    assert 2.5 < statistics.fmean(ratios) < 4


def test_a_page_is_the_same_in_every_process() -> None:
    code = "import sys; from benchmarks.pages import Pages; sys.stdout.buffer.write(Pages().page(7))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, check=True)
    assert done.stdout == Pages().page(7)


def test_the_server_has_every_page_on_every_address_and_keeps_connections_open() -> None:
    pages = Pages()
    with Server(3) as server:
        urls = server.urls(3)
        assert [url.split("/")[2].split(":")[0] for url in urls] == addresses(3)
        port = int(urls[0].split(":")[2].split("/")[0])
        for address in addresses(3):
            with socket.create_connection((address, port), timeout=10) as connection:
                file = connection.makefile("rb")
                for number in (0, 5):
                    connection.sendall(b"GET /page/%d HTTP/1.1\r\nHost: x\r\n\r\n" % number)
                    head = dict(line.split(": ", 1) for line in _head(file.readline))
                    assert file.read(int(head["Content-Length"])) == pages.page(number)
    assert server.cpu_s > 0


def test_the_server_counts_connections_and_not_the_one_that_requests_their_number() -> None:
    with Server(2) as server:
        assert server.connections() == 0
        port = int(server.urls(1)[0].split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            file = connection.makefile("rb")
            for requested, expected in (
                (b"empty/1", (b"HTTP/1.1 200 OK", b"0")),
                (b"moved/7", (b"HTTP/1.1 302 Found", b"0")),
                (b"zeros/3000000/9", (b"HTTP/1.1 200 OK", b"3000000")),
            ):
                connection.sendall(b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % requested)
                lines = [line.strip() for line in iter(file.readline, b"\r\n")]
                length = next(line.split()[1] for line in lines if line.startswith(b"Content-Length"))
                assert (lines[0], length) == expected
                assert len(file.read(int(length))) == int(length)
        assert server.connections() == server.connections() == 1


def _head(read_line: object) -> list[str]:
    assert callable(read_line)
    assert read_line() == b"HTTP/1.1 200 OK\r\n"
    return [line.decode().strip() for line in iter(read_line, b"\r\n")]


def test_the_cost_counts_processor_time_of_descendants_too(tmp_path: Path) -> None:
    work = "import time\nwhile time.process_time() < 0.4: pass"
    alone = cost_of(tmp_path, work)
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}])"
    with_child = cost_of(tmp_path, code)
    assert alone.exit_code == with_child.exit_code == 0
    assert alone.cpu_s >= 0.4
    assert with_child.cpu_s >= 0.4


def test_a_command_that_does_not_end_is_killed(tmp_path: Path) -> None:
    assert cost_of(tmp_path, "import time; time.sleep(600)", timeout=0.3).exit_code == -9


def test_responses_are_found_in_warc_and_wacz_files(tmp_path: Path) -> None:
    urls = [f"http://127.0.1.1/page/{number}" for number in range(5)]
    warc, wacz = tmp_path / "a.warc.gz", tmp_path / "a.wacz"
    write_warc(warc, urls)
    with zipfile.ZipFile(wacz, "w") as packed:
        packed.write(warc, "archive/a.warc.gz")
        packed.writestr("datapackage.json", "{}")
    assert list(response_urls(warc)) == list(response_urls(wacz)) == urls


class Forgetful:
    """A crawler that archives all but the last *lost* of its pages."""

    share = 0.5

    def __init__(self, name: str, *, lost: int) -> None:
        self.name = name
        self._lost = lost

    def make_ready(self) -> str:
        return "1"

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        return urls

    def command(self, urls: Path, out: Path) -> list[str]:
        code = (
            "import sys; from pathlib import Path; from project.test_benchmarks import write_warc; "
            "urls = Path(sys.argv[1]).read_text().split(); "
            "lost = int(sys.argv[3]) if len(urls) > 1 else 0; "
            "write_warc(Path(sys.argv[2]) / 'a.warc.gz', urls[:len(urls) - lost])"
        )
        return [sys.executable, "-c", code, str(urls), str(out), str(self._lost)]

    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": str(PROJECT / "tests")}

    def archives(self, out: Path) -> list[Path]:
        return sorted(out.glob("*.warc.gz"))


def test_a_round_in_which_a_page_is_missing_is_void(tmp_path: Path) -> None:
    crawlers = [Forgetful("honest", lost=0), Forgetful("forgetful", lost=1)]
    with Server(2) as server:
        turns = list(play(crawlers, server, pages=8, rounds=2, directory=tmp_path))
    # Each round begins with another one.
    assert [name for name, _ in turns] == ["honest", "forgetful", "forgetful", "honest"]
    for name, turn in turns:
        if name == "honest":
            assert isinstance(turn, Round)
            assert turn.pages == 4
        else:
            assert isinstance(turn, str)
            assert "sent for 4 pages; its archive holds 3" in turn


def test_the_table_and_the_json_say_the_same(tmp_path: Path) -> None:
    with Server(2) as server:
        turns = list(play([Forgetful("honest", lost=0)], server, pages=4, rounds=1, directory=tmp_path))
    (turn,) = [turn for _, turn in turns if isinstance(turn, Round)]
    figures = summary([turn])
    assert figures["pages_per_cpu_s"] == turn.pages / turn.cost.cpu_s
    report = {
        "rounds": 1,
        "hosts": 2,
        "page": {"bytes": 26_000, "gzip_ratio": 3.0},
        "versions": {"honest": "1"},
        "crawlers": {
            "honest": figures,
            "amicrawl": {**figures, "pages_per_cpu_s": 3 * figures["pages_per_cpu_s"]},
        },
        "server": {"pages": 4, "cpu_s": 0.1},
        "not_measured": {"wget": "wget is not installed."},
        "void": [],
    }
    shown = table(json.loads(json.dumps(report)))
    assert f"{figures['pages_per_cpu_s']:,.0f}" in shown
    assert "3.00 x the pages of honest" in shown
    assert "wget was not measured: wget is not installed." in shown


@pytest.mark.parametrize("append", [append_ours, append_with_warcio])
def test_both_warc_writers_are_given_the_same_and_write_all_of_it(
    append: object, tmp_path: Path
) -> None:
    assert callable(append)
    exchanges = captures(5)
    append(exchanges, tmp_path)
    (path,) = tmp_path.glob("*.warc.gz")
    assert list(response_urls(path)) == [capture.url for capture in exchanges]
    written = gzip.decompress(path.read_bytes())
    for capture in exchanges:
        assert capture.request in written
        assert capture.head + b"".join(capture.body.blocks()) in written


def test_a_crawl_in_several_processes_is_measured_as_a_crawler_of_its_own(tmp_path: Path) -> None:
    one, two = Amicrawl(), Amicrawl(processes=2)
    assert (one.name, two.name) == ("amicrawl", "amicrawl, 2 processes")
    requested = [crawler.command(tmp_path / "urls.txt", tmp_path) for crawler in (one, two)]
    assert ["processes=2" in words for words in requested] == [False, True]
