"""A crawl with a `JOBDIR` is resumed as without the line when it was stopped, and after a kill, too."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from guests.guest_runs import GuestServer, Ran, run_on
from loopback import page

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 15


def respond(head: bytes) -> bytes:
    number = int(head.split(b" ")[1][1:])
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
    links = "".join(f'<a href="/{child}">x</a>' for child in children)
    return page(f"<html>{links}</html>".encode(), "Content-Type: text/html")


def stopped_and_resumed(directory: Path, *, has_line: bool) -> tuple[Ran, Ran]:
    """Run the spider until it has read a few pages, and again in the same directory."""
    with GuestServer(respond) as server:
        stops = {"CLOSESPIDER_PAGECOUNT": "5"}
        first = run_on(server, "walking.py", directory, has_line=has_line, settings=stops)
        return first, run_on(server, "walking.py", directory, has_line=has_line)


def test_a_crawl_that_is_stopped_and_resumed_requests_and_scrapes_as_without_the_line(
    tmp_path: Path,
) -> None:
    plain = stopped_and_resumed(tmp_path / "plain", has_line=False)
    archived = stopped_and_resumed(tmp_path / "archived", has_line=True)
    for two in (plain, archived):
        assert [ran.returncode for ran in two] == [0, 0], two[0].log + two[1].log
        assert 1 < len(two[0].requested) < PAGES
        # Which request is the last before the stop is a matter of moments.
        requested = [each for ran in two for each in ran.requested]
        assert sorted(requested) == sorted(f"GET /{number}" for number in range(PAGES))
        assert sorted(int(item["page"]) for ran in two for item in ran.items) == list(range(PAGES))
    assert plain[0].scraped | plain[1].scraped == archived[0].scraped | archived[1].scraped
    assert archived[1].archived == {f"/{number}" for number in range(PAGES)}


def test_a_crawl_whose_job_directory_is_full_ends_with_a_sentence_and_is_resumed(tmp_path: Path) -> None:
    with GuestServer(respond) as server:
        full = run_on(server, "walking.py", tmp_path, has_line=True, arguments={"fills_in": "2"})
        resumed = run_on(server, "walking.py", tmp_path, has_line=True)
    assert "job (JOBDIR) cannot be written to" in full.log
    assert "Closing spider (output_failed)" in full.log
    assert full.log.count("cannot be written to") == 1
    assert "Exception in callback" not in full.log
    assert len(full.requested) < PAGES
    assert resumed.returncode == 0, resumed.log
    read = {item["page"] for ran in (full, resumed) for item in ran.items}
    assert read == {str(number) for number in range(PAGES)}


def test_a_journal_that_is_none_ends_the_crawl_with_a_sentence_and_costs_nothing(tmp_path: Path) -> None:
    journal = tmp_path / "job" / "requests.sqlite"
    with GuestServer(respond) as server:
        stops = {"CLOSESPIDER_PAGECOUNT": "5"}
        stopped = run_on(server, "walking.py", tmp_path, has_line=True, settings=stops)
        journal.write_bytes(b"no database" * 1000)
        refused = run_on(server, "walking.py", tmp_path, has_line=True)
        journal.unlink()
        resumed = run_on(server, "walking.py", tmp_path, has_line=True)
    assert "job/requests.sqlite cannot be read: file is not a database. Move it away" in refused.log
    assert "Closing spider (output_failed)" in refused.log
    assert "Traceback" not in refused.log
    assert not refused.requested
    requested = [each for ran in (stopped, resumed) for each in ran.requested]
    assert sorted(requested) == sorted(f"GET /{number}" for number in range(PAGES))


def test_a_spider_gets_nothing_of_another_one_that_was_stopped_in_the_same_directory(
    tmp_path: Path,
) -> None:
    with GuestServer(respond) as server:
        stops = {"CLOSESPIDER_PAGECOUNT": "3", "JOBDIR": "walking"}
        run_on(server, "walking.py", tmp_path, has_line=True, settings=stops)
        other = run_on(
            server, "single_request.py", tmp_path, has_line=True, arguments={"url": f"{server.url}/14"}
        )
    assert other.requested == ["GET /14"]
    assert [item["page"] for item in other.items] == ["/14"]
    assert other.archived > {"/0", "/14"}


def test_what_waited_when_the_spider_was_killed_is_requested_and_read_by_the_next_run(
    tmp_path: Path,
) -> None:
    with GuestServer(respond) as server:
        killed = run_on(server, "walking.py", tmp_path, has_line=True, arguments={"dies_in": "5"})
        resumed = run_on(server, "walking.py", tmp_path, has_line=True)
    assert killed.returncode == -signal.SIGKILL
    assert resumed.returncode == 0, resumed.log
    done = {target for target in killed.requested if target != "GET /5"}
    unread = {f"GET /{number}" for number in range(PAGES)} - done
    assert "GET /5" in killed.requested
    assert {each for each in resumed.requested if each != "GET /0"} == unread
    assert {f"GET /{item['page']}" for item in resumed.items} >= unread


def test_a_journal_that_is_damaged_in_the_middle_ends_the_resumed_crawl_with_a_sentence(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "job" / "requests.sqlite"
    with GuestServer(respond) as server:
        run_on(server, "walking.py", tmp_path, has_line=True, arguments={"dies_in": "5"})
        with closing(sqlite3.connect(journal)) as database:
            waiting = [(number, b"x" * 3000) for number in range(100, 200)]
            with database:
                database.executemany("INSERT INTO requests VALUES (?, ?)", waiting)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (size,) = database.execute("PRAGMA page_size").fetchone()
        content = bytearray(journal.read_bytes())
        content[50 * size : 51 * size] = b"\xff" * size
        journal.write_bytes(content)
        queues = set((tmp_path / "job" / "requests.queue").iterdir())
        refused = run_on(server, "walking.py", tmp_path, has_line=True)
    assert "job/requests.sqlite cannot be read: the database is damaged. Move it away" in refused.log
    assert "Traceback" not in refused.log
    assert not refused.requested
    assert set((tmp_path / "job" / "requests.queue").iterdir()) >= queues


def test_a_request_that_the_code_of_today_cannot_make_again_costs_no_other(tmp_path: Path) -> None:
    with GuestServer(respond) as server:
        run_on(server, "walking.py", tmp_path, has_line=True, arguments={"dies_in": "5"})
        with closing(sqlite3.connect(tmp_path / "job" / "requests.sqlite")) as database, database:
            # A class whose constructor has other arguments by now.
            too_many = b"cbuiltins\nint\n(S'1'\nS'2'\nS'3'\ntR."
            database.execute("INSERT INTO requests VALUES (999, ?)", (too_many,))
        resumed = run_on(server, "walking.py", tmp_path, has_line=True)
    assert resumed.returncode == 0, resumed.log
    assert "A request of the crawl before cannot be made again: TypeError" in resumed.log
    assert "Traceback" not in resumed.log
    assert "GET /5" in resumed.requested


def test_what_is_requested_when_the_archive_is_closed_holds_up_no_end(tmp_path: Path) -> None:
    """Scrapy fetches it in vain: it raises AlreadyCalledError in place of the response."""
    with GuestServer(lambda _: page(b"<p>ok</p>", "Content-Type: text/html")) as server:
        settings = {"LATE": f"{server.url}/late"}
        ran = run_on(server, "late.py", tmp_path, has_line=True, settings=settings)
    assert ran.returncode == 0, ran.log
    assert ran.requested == ["GET /in-time"]
    assert ran.archived == {"/in-time"}
    assert "late: " in ran.log
