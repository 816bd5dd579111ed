"""The frontier: every URL of a crawl, where it stands, and which one comes next; and how it is kept.

    crawl -> DurableFrontier -> LivePartition -> store (journal, snapshots) -> format (files)
                   |-> queue           |-> state: tables, strings, seen-set

The crawl offers the URLs that it finds, takes the next row whose host may be asked now, and settles it
with the outcome of the fetch; `DurableFrontier` says what is promised. Rules that only compute have
modules of their own: `states` and `outcomes` (transitions), `revisits` (when a page is due again),
`admission` (what is kept out). Nothing here reads a clock or sends a request:
moments are parameters, and all changes to the disk go through the `Disk` that is passed in.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.frontier.admission import Admission, Trap, classify
    from amicrawl.frontier.corrections import failed, grown_old, kept_out, make_due, old_at
    from amicrawl.frontier.dump import dump_pieces, read_dump
    from amicrawl.frontier.durable import DurableFrontier
    from amicrawl.frontier.format.strings import string_at
    from amicrawl.frontier.inventory import is_settled_since
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.opening import best_state, load
    from amicrawl.frontier.outcomes import Soft404Detector, judge, settled_at
    from amicrawl.frontier.revisits import AgeLimits, Revisits, fingerprint_of
    from amicrawl.frontier.row import (
        Dispatch,
        Found,
        Hop,
        Offer,
        Outcome,
        Settled,
        Source,
        extended,
        hops_of,
        is_route,
    )
    from amicrawl.frontier.row_source import (
        STATUSES,
        LiveSource,
        RowSource,
        conventions,
        find_url,
        frontier_directory,
        open_rows,
        partition_in,
    )
    from amicrawl.frontier.row_strings import offer_of, offered
    from amicrawl.frontier.seen import KeyIndex
    from amicrawl.frontier.shard import belongs, shard_of
    from amicrawl.frontier.snapshot import Copies, write
    from amicrawl.frontier.state import IDENTITY, INDEX_ROWS, PartitionState
    from amicrawl.frontier.states import RESTING, WAITING, Cause, Status
    from amicrawl.frontier.store.directory import decode_superblock, list_directory, snapshot_name
    from amicrawl.frontier.store.generations import Generations, begin_with
    from amicrawl.frontier.store.logs import replay_logs
else:
    __getattr__ = lazy_exports(
        __name__,
        INDEX_ROWS="state",
        Admission="admission",
        Cause="states",
        Copies="snapshot",
        Dispatch="row",
        DurableFrontier="durable",
        Found="row",
        Generations="store.generations",
        Hop="row",
        IDENTITY="state",
        KeyIndex="seen",
        LivePartition="live",
        Offer="row",
        Outcome="row",
        PartitionState="state",
        RESTING="states",
        AgeLimits="revisits",
        Revisits="revisits",
        Settled="row",
        Soft404Detector="outcomes",
        Source="row",
        Status="states",
        Trap="admission",
        WAITING="states",
        begin_with="store.generations",
        belongs="shard",
        best_state="opening",
        classify="admission",
        decode_superblock="store.directory",
        dump_pieces="dump",
        extended="row",
        failed="corrections",
        fingerprint_of="revisits",
        hops_of="row",
        is_route="row",
        is_settled_since="inventory",
        judge="outcomes",
        settled_at="outcomes",
        grown_old="corrections",
        kept_out="corrections",
        list_directory="store.directory",
        load="opening",
        make_due="corrections",
        old_at="corrections",
        offer_of="row_strings",
        offered="row_strings",
        read_dump="dump",
        replay_logs="store.logs",
        shard_of="shard",
        snapshot_name="store.directory",
        write="snapshot",
        string_at="format.strings",
        STATUSES="row_source",
        LiveSource="row_source",
        RowSource="row_source",
        conventions="row_source",
        find_url="row_source",
        frontier_directory="row_source",
        open_rows="row_source",
        partition_in="row_source",
    )

__all__ = [
    "IDENTITY",
    "INDEX_ROWS",
    "RESTING",
    "STATUSES",
    "WAITING",
    "Admission",
    "AgeLimits",
    "Cause",
    "Copies",
    "Dispatch",
    "DurableFrontier",
    "Found",
    "Generations",
    "Hop",
    "KeyIndex",
    "LivePartition",
    "LiveSource",
    "Offer",
    "Outcome",
    "PartitionState",
    "Revisits",
    "RowSource",
    "Settled",
    "Soft404Detector",
    "Source",
    "Status",
    "Trap",
    "begin_with",
    "belongs",
    "best_state",
    "classify",
    "conventions",
    "decode_superblock",
    "dump_pieces",
    "extended",
    "failed",
    "find_url",
    "fingerprint_of",
    "frontier_directory",
    "grown_old",
    "hops_of",
    "is_route",
    "is_settled_since",
    "judge",
    "kept_out",
    "list_directory",
    "load",
    "make_due",
    "offer_of",
    "offered",
    "old_at",
    "open_rows",
    "partition_in",
    "read_dump",
    "replay_logs",
    "settled_at",
    "shard_of",
    "snapshot_name",
    "string_at",
    "write",
]
