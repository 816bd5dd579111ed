"""Damage within a journal costs what stood in it; what is intact behind it counts."""

from __future__ import annotations

import random
import struct
from functools import partial
from typing import TYPE_CHECKING

import pytest
from frontier.admitting import Crawl
from frontier.live.crawls import HOUR, frontier_on, opened
from meguri.store.partitions import frame, host_frame, intern_frame, url_frame

from amicrawl.config import Identity
from amicrawl.frontier import Admission, Found, Offer, Outcome, Source
from amicrawl.meguri import Status
from amicrawl.meguri.arena import entry_of
from amicrawl.meguri.rows import UrlRow
from amicrawl.meguri.store.journal import FrameKind, read_frames
from amicrawl.meguri.store.logs import arena_lengths, gap_at, replay_logs
from amicrawl.seed import Seed
from amicrawl.urls import text_of, url_key

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.meguri import LivePartition

URLS = [f"http://host-{n % 5}.example/{'p' * (n % 40)}/{n}" for n in range(300)]


def killed_crawl(directory: Path, *, parts: int = 1) -> list[Path]:
    """Offer URLs and crawl most, in so many processes that are killed; return their logs."""
    for part in range(parts):
        partition = opened(directory)
        frontier = frontier_on(partition)
        for url in URLS[part::parts]:
            frontier.offer(
                Offer(Seed(url, meta_json='{"a": 1}'), url_key(url, Identity.EXACT), Source.SEED)
            )
        for _ in range(200 // parts):
            dispatch = frontier.next(0.0)
            assert dispatch is not None
            url = dispatch.offer.seed.url
            found = Found(f"{len(url):040x}", f'"{url[-3:]}"', "Mon", 1_700_000_000_123)
            frontier.settle(dispatch.key, Outcome(200, found=found), 0.0)
        frontier.flush()
        partition.abandon()
    return [path for path in sorted(directory.glob("log-*")) if path.stat().st_size]


def rows_of(partition: LivePartition) -> dict[str, Status]:
    """Return where each URL stands; its key must be that of its text, and its ETag its own."""
    found = {}
    for number in range(len(partition.state.rows)):
        if number in partition.state.removed:
            continue
        row = partition.get(number)
        url = text_of(partition.texts_at(row.url_ref)[0])
        assert url_key(url, Identity.EXACT) == (row.host, row.path)
        if row.etag_ref:
            etag = partition.texts_at(row.etag_ref)[0]
            assert etag in {b"", f'"{url[-3:]}"'.encode()}
        found[url] = Status(row.status)
    return found


def reopened(directory: Path) -> tuple[dict[str, Status], tuple[str, ...]]:
    """Return what is found, twice, since the first time it is put right on disk, and what is said."""
    first = opened(directory)
    rows, notes = rows_of(first), first.opened.notes
    first.abandon()
    second = opened(directory)
    assert rows_of(second) == rows
    assert not second.opened.notes
    second.abandon()
    return rows, notes


@pytest.mark.slow
def test_a_flipped_bit_costs_one_change(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    (log,) = killed_crawl(directory)
    block, dice = log.read_bytes(), random.Random(1)
    whole = {path.name: path.read_bytes() for path in directory.iterdir()}
    frames = list(read_frames(block))
    for hit in dice.sample(frames[:-1], 25):
        for path in directory.iterdir():
            path.unlink()
        for name, content in whole.items():
            (directory / name).write_bytes(content)
        spoiled = bytearray(block)
        spoiled[hit.offset + dice.randrange(hit.length)] ^= 1 << dice.randrange(8)
        log.write_bytes(spoiled)
        rows, notes = reopened(directory)
        assert len(URLS) - 1 <= len(rows)
        assert rows.keys() <= set(URLS)
        # A row that is damaged itself is not known to have been there.
        is_nameless = len(rows) < len(URLS) and hit.kind is FrameKind.INTERN
        assert notes[-1].startswith("1 URLs were in the damage") is is_nameless
        assert (
            f"{log} is damaged from byte {hit.offset} to byte {hit.offset + hit.length}: 1" in notes[0]
        )


@pytest.mark.parametrize("seed", range(6))
def test_a_lost_block_costs_what_stood_in_it(tmp_path: Path, seed: int) -> None:
    directory = tmp_path / "frontier"
    (log,) = killed_crawl(directory)
    block, dice = bytearray(log.read_bytes()), random.Random(seed)
    at = dice.randrange(len(block) - 6000)
    block[at : at + 4096] = dice.choice([bytes(4096), dice.randbytes(4096)])
    log.write_bytes(block)
    rows, notes = reopened(directory)
    assert len(rows) > len(URLS) - 4096 // 121
    assert "changes are gone, what follows was read" in notes[0]


def test_behind_damage_at_the_end_of_a_log_the_next_one_counts(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    first, second = killed_crawl(directory, parts=2)
    block = bytearray(first.read_bytes())
    block[-5] ^= 4
    first.write_bytes(block)
    kept = second.read_bytes()
    rows, notes = reopened(directory)
    assert len(rows) >= len(URLS) - 1
    assert str(first) in notes[0]
    assert not any("cut off" in note for note in notes)
    assert (first.read_bytes(), second.read_bytes()) == (bytes(block), kept)


def test_a_url_whose_host_was_in_the_damage_too_comes_back(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    crawl = Crawl(directory, admission=Admission())
    offers = [
        Offer(Seed(url), url_key(url, Identity.EXACT), Source.LINK)
        for url in (f"http://host-{n}.example/" for n in range(4))
    ]
    assert crawl.frontier.offer_all(offers) == 4
    crawl.end(killed=True)
    log = directory / "log-2"
    block = bytearray(log.read_bytes())
    lost = offers[1]
    for each in read_frames(bytes(block)):
        is_host = each.kind is FrameKind.HOST and each.body[:8] == lost.key.host.to_bytes(8, "little")
        if is_host or each.body == entry_of(lost.seed.url.encode()):
            block[each.offset + each.length - 1] ^= 1
    log.write_bytes(block)
    crawl = Crawl(directory, admission=Admission())
    assert len(crawl.partition) == 3
    assert crawl.frontier.offer(lost)
    assert len(crawl.fetch_all()) == 4
    assert crawl.host(lost.key.host).url_count == 1
    crawl.end()


def test_a_robots_txt_that_was_in_the_damage_is_none(tmp_path: Path) -> None:
    directory = tmp_path / "frontier"
    crawl = Crawl(directory)
    key = url_key(URLS[0], Identity.EXACT)
    assert crawl.frontier.offer(Offer(Seed(URLS[0]), key, Source.SEED))
    crawl.frontier.flush()
    note = partial(crawl.frontier.hosts.note_robots, fetched=HOUR, expires=HOUR, missing=False)
    note(key.host, b"User-agent: *\nDisallow: /a\n")
    crawl.end(killed=True)
    log = directory / "log-2"
    block = bytearray(log.read_bytes())
    robots = [each for each in read_frames(bytes(block)) if each.kind is FrameKind.INTERN][-1]
    block[robots.offset + robots.length - 1] ^= 1
    log.write_bytes(block)
    crawl = Crawl(directory)
    assert crawl.host(key.host).robots_ref == 0
    crawl.frontier.hosts.note_robots(key.host, b"", fetched=HOUR, expires=HOUR, missing=True)
    assert crawl.fetch_all() == [key]
    crawl.end()


def test_what_could_not_fit_into_the_damage_is_not_taken_for_what_follows_it() -> None:
    block = frame(1, 2, b"\1a", key_length=0) + bytes(50) + frame(9, 2, b"\1b", key_length=0)
    begin = len(frame(1, 2, b"\1a", key_length=0))
    assert gap_at(block, begin, 2) is None
    block = frame(1, 2, b"\1a", key_length=0) + bytes(50) + frame(4, 2, b"\1b", key_length=0)
    gap = gap_at(block, begin, 2)
    assert gap is not None
    assert (gap.lost, gap.next_lsn, gap.end) == (2, 4, begin + 50)


def test_nothing_behind_damage_counts_where_no_number_says_what_it_follows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(50) + frame(4, 2, b"\1b", key_length=0))
    handed_on: list[object] = []
    takes = dict.fromkeys(("on_url", "on_host", "on_intern", "on_tombstone", "on_gap"), handed_on.append)
    replayed = replay_logs([path], first_lsn=None, **takes)
    assert handed_on == []
    assert "counts up to byte 0 of" in replayed.notes[0]


def test_damage_that_looks_like_frames_everywhere_is_given_up_on() -> None:
    # Each head says that the rest of the log is one string: to sum all of them up would take hours.
    heads = [struct.pack("<QBBI", 3, 2, 0, 2_000_000 - 14 * n) for n in range(140_000)]
    damage = b"bad frame" * 4 + b"".join(heads) + bytes(50_000)
    assert gap_at(damage + frame(4, 2, b"\1b", key_length=0), 0, 2) is None


def test_how_long_the_arena_was_is_what_sixteen_rows_behind_damage_say() -> None:
    """Each refers to the string before it; one that does not is outvoted by the others."""
    entries, length = entry_of(b"http://a.test/"), 1000
    frames = [host_frame(7, bytes(97))]
    for number in range(20):
        reference = 5 if number == 0 else length
        row = UrlRow(1, number, 1, url_ref=reference).packed()
        frames += [intern_frame(8 + 2 * number, entries), url_frame(9 + 2 * number, row)]
        length += len(entries)
    said = list(arena_lengths(b"".join(frames), 0, 7))
    assert said == [5, *[1000] * 15]


def test_only_the_row_right_behind_a_string_says_where_that_began() -> None:
    string, row = intern_frame(1, b"\1a"), UrlRow(1, 2, 1, url_ref=500).packed()
    settled = url_frame(3, UrlRow(1, 3, 1, url_ref=9).packed())
    assert list(arena_lengths(string + url_frame(2, row) + settled, 0, 1)) == [500]
