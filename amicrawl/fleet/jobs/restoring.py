"""A job that Redis has lost: the copy of it, how the loss is noticed, and how it is written again.

It is noticed by the epoch, a text in Redis that is made anew where it is missing: the copy has the one
that was there when it was made.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from amicrawl.fleet.checkpoints import JobCopy
from amicrawl.fleet.database import hashes_at, number_of, text_at
from amicrawl.fleet.jobs import lookup
from amicrawl.fleet.leases import ident_of_unit

if TYPE_CHECKING:
    from amicrawl.fleet.database import JobStore

_NOT_REMEMBERED = frozenset(
    {"finished_at", "aborted", "failed", "last_broadcasted_log_entry", "ts", "amicrawl_step"}
)


def fetched_copy(store: JobStore, unit: str, *, token: int) -> JobCopy:
    """Return what Redis holds of *unit*; the record is empty where there is none.

    Raises RedisUnavailable; what is of a wrong type, or too large, counts as absent.
    """
    keys, ident = store.keys, ident_of_unit(unit)
    with store.responding():
        record, claim = hashes_at(store, [keys.job(ident), keys.claim(unit)])
        return JobCopy(
            unit=unit,
            token=token,
            epoch=text_at(store, keys.own("epoch"), longest=100) or "",
            record=record if record.get("url") else {},
            ignores=lookup.ignores(store, ident),
            desired=lookup.desired(store, ident),
            claim=claim,
            config=lookup.config(store, ident) or "",
            config_fault=lookup.config_fault(store, ident),
        )


def is_forgotten(store: JobStore, copy: JobCopy) -> bool:
    """Tell whether Redis was emptied, or put back in time, since *copy* was read from it."""
    keys = store.keys
    if text_at(store, keys.own("epoch"), longest=100) != copy.epoch:
        return True
    return number_of(text_at(store, keys.token_counter, longest=100)) < copy.token


def begin_epoch(store: JobStore) -> None:
    """Have Redis hold the text by which it is seen that it was emptied."""
    with store.responding():
        store.client.set(store.keys.own("epoch"), uuid.uuid4().hex, nx=True)


def restore(store: JobStore, copy: JobCopy, *, lease_ms: int, epoch: str) -> bool:
    """Write *copy* into a Redis that has forgotten the job; False where another owner has it now.

    *epoch* is the text that begins a new one where there is none. Raises as `store` does.
    """
    keys, ident = store.keys, copy.ident
    record = {name: value for name, value in copy.record.items() if name not in _NOT_REMEMBERED}
    # A reader of ArchiveBot's that finds no mark would begin at an invalid number.
    record.setdefault("last_broadcasted_log_entry", "0")
    claim = {name: value for name, value in copy.claim.items() if name not in {"token", "state"}}
    pairs = [text for each in (record, claim, copy.desired) for pair in each.items() for text in pair]
    queue = keys.queue(copy.claim.get("queue") or "pending")
    with store.responding():
        args: list[str | int] = [copy.unit, copy.token, lease_ms, epoch, keys.updates, copy.config]
        args += [len(record), len(claim), len(copy.desired), *pairs, *copy.ignores]
        done, copy.epoch = store.scripts(
            "restore",
            keys=[
                *(keys.job(ident), keys.ignores(ident), keys.claim(copy.unit), keys.lease(copy.unit)),
                *(keys.desired(ident), keys.config(ident), keys.own("epoch"), keys.token_counter),
                *(keys.working, queue),
            ],
            args=args,
        )
    return bool(done)
