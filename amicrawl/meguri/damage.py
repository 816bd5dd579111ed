"""What is wrong with a frontier file, or with the directory of a partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from amicrawl.disk import Disk, readable
from amicrawl.errors import DamagedFileError
from amicrawl.meguri.format.faults import FrontierFileError
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import check_rows, verify
from amicrawl.meguri.opening import load
from amicrawl.meguri.row_source import frontier_directory
from amicrawl.meguri.store.directory import undisturbed
from amicrawl.meguri.store.generations import Generations
from amicrawl.meguri.store.logs import replay_logs
from amicrawl.meguri.store.superblock import SUPERBLOCK_SIZE, decode_superblock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.meguri.store.directory import Listing


@dataclass(slots=True)
class DamageFindings:
    """What was found."""

    damage: list[DamagedFileError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences about what is not as it might be, and does no harm."""


def find_damage(path: Path) -> DamageFindings:
    """Return all that is wrong with *path*, a frontier file or a directory that has a frontier.

    Of a directory every snapshot is read, and what they and the logs give together. Raises InputError
    where there is nothing to read.
    """
    if path.is_dir():
        directory = frontier_directory(path)
        return undisturbed(
            directory,
            partial(_found_in_directory, directory),
            failed=lambda found: len(found.damage) > 0,
        )
    found = DamageFindings()
    _look_into_file(path, found)
    return found


def _found_in_directory(directory: Path, listing: Listing) -> DamageFindings:
    found = DamageFindings()
    for _, snapshot in sorted(listing.snapshots.items()):
        _look_into_file(snapshot, found)
    if listing.superblock is not None:
        found.damage += _superblock_damage(listing.superblock)
    try:
        load(directory)
    except DamagedFileError as error:
        found.damage.append(error)
    else:
        _look_into_logs(directory, found)
    return found


def _look_into_logs(directory: Path, found: DamageFindings) -> None:
    """Note what the logs lack that would be replayed; the directory can be loaded."""
    chosen, _ = Generations(directory, disk=Disk()).choose(_check_ends)
    logs = replay_logs(
        chosen.logs,
        first_lsn=chosen.lsn,
        on_url=_pass_over,
        on_host=_pass_over,
        on_intern=_pass_over,
        on_tombstone=_pass_over,
        on_gap=_pass_over,
    )
    found.notes += chosen.notes
    found.damage += [
        DamagedFileError(
            log.path, gap.offset, f"log: damaged up to byte {gap.end}, {gap.lost} changes gone"
        )
        for log in logs.logs
        for gap in log.gaps
    ]
    for log in logs.torn:
        # A kill leaves a frame that is cut short; bytes that changed are another matter.
        if log.stopped.endswith("cut short"):
            found.notes.append(f"{log.path} counts up to byte {log.intact_bytes}: there {log.stopped}.")
        else:
            found.damage.append(DamagedFileError(log.path, log.intact_bytes, f"log: {log.stopped}"))


def _superblock_damage(path: Path) -> list[DamagedFileError]:
    with readable(path), path.open("rb") as file:
        _, faults = decode_superblock(file.read(SUPERBLOCK_SIZE))
    return [DamagedFileError(path, fault.at, f"superblock: {fault.reason}") for fault in faults]


def _check_ends(path: Path) -> None:
    with FrontierFile.open(path) as file:
        file.check_regions()


def _pass_over(_: object) -> None:
    pass


def _look_into_file(path: Path, found: DamageFindings) -> None:
    """Find what is wrong with a file: of each column and region the first, then of the whole."""
    try:
        file = FrontierFile.open(path)
    except DamagedFileError as error:
        found.damage.append(error)
        return
    with file:
        try:
            verify(file)
        except FrontierFileError as error:
            damage = list(_damage(file))
            found.damage += damage
            if not damage:
                found.notes.append(str(error))


def _damage(file: FrontierFile) -> Iterator[FrontierFileError]:
    regions: list[str] = []
    for check in _checks(file):
        try:
            check()
        except FrontierFileError as error:
            # What is wrong with a column is wrong with its region too, and need not be said again.
            if not any(region.startswith(error.region) for region in regions):
                regions.append(error.region)
                yield error


def _checks(file: FrontierFile) -> Iterator[Callable[[], object]]:
    for name in file.url_columns:
        yield partial(_read, file.url_pages, name)
    for name in file.host_columns:
        yield partial(_read, file.host_pages, name)
    yield file.schedule
    yield file.seen_filter
    yield partial(file.copy_arena, len)
    yield file.check_regions
    # Last, as it stops at the first fault: how the rows go together.
    yield partial(check_rows, file)


def _read(pages: Callable[[str], Iterable[object]], name: str) -> None:
    for _ in pages(name):
        pass
