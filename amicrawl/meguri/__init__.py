"""Frontiers on disk: frontier files (.meguri), the directory of a live partition, the states of rows.

    LivePartition -> state (tables, strings, seen-set) -> store (journal, snapshots) -> format (files)

Which row comes next, and what follows from a fetch, is for the room `frontier`, which keeps its rows
here. `opening` reads a directory, `row_source` finds rows in a file or a directory, `damage` what is
wrong with either. Nothing here reads a clock: moments are parameters, and all changes to the disk go
through the `Disk` that is passed in.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.meguri.arena import entry_of
    from amicrawl.meguri.damage import find_damage
    from amicrawl.meguri.dealing import deal_frontier, gather_frontiers
    from amicrawl.meguri.dump import dump_pieces, read_dump
    from amicrawl.meguri.format.strings import ANNEX_MARK, pack_robots, string_at
    from amicrawl.meguri.live import LivePartition
    from amicrawl.meguri.opening import best_state
    from amicrawl.meguri.row_source import (
        STATUSES,
        LiveSource,
        RowSource,
        conventions,
        find_url,
        frontier_directory,
        open_rows,
        partition_in,
        status_name,
    )
    from amicrawl.meguri.rows import HostRow, UrlRow, offered_row
    from amicrawl.meguri.seen import KeyIndex
    from amicrawl.meguri.snapshot import Copies
    from amicrawl.meguri.state import IDENTITY, PartitionState
    from amicrawl.meguri.states import RESTING, RETURNS, WAITING, Cause, Event, Status, after
    from amicrawl.meguri.store.directory import undisturbed
else:
    __getattr__, __all__ = lazy_exports(__spec__)
