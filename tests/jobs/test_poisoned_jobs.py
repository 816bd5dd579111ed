"""One poisoned thing of each kind in Redis or a bucket: its job begins anew or is run, as others are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jobs.test_pipeline_parts import crawl_directory, manifest_in
from jobs.test_supervisor import IDENTS, Pipelines, ended, raw, said, submit

from amicrawl.disk import Disk
from amicrawl.fleet.checkpoints.checkpoint import save
from amicrawl.fleet.jobs.pipeline import PipelineOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis_server import RedisServer

ABORTS = Path(__file__).parents[1] / "fuzz" / "corpus" / "parquet" / "histogram-of-another-size"
"""A table whose footer once ended the process that read it."""
POISONED = IDENTS[0]


@pytest.fixture
def run(redis_server: RedisServer, tmp_path: Path) -> Iterator[Pipelines]:
    pipelines = Pipelines(redis_server.url, tmp_path)
    yield pipelines
    pipelines.end()


def begun_elsewhere(run: Pipelines, bucket: Path) -> Path:
    """Submit the job as one that another machine has begun; return what its name in the bucket is."""
    base = f"a.example-inf-20260101-000000-{POISONED[:5]}"
    submit(run, POISONED)
    claim = {"token": "1", "attempt": "1", "state": "queued", "queued_at": "1700000000"}
    claim |= {"directory": base, "store": "elsewhere", "checkpoint": "0"}
    raw(run.store).hset(run.store.keys.claim(POISONED), mapping=claim)
    manifest_in(bucket / base)
    return bucket / base


def a_checkpoint(run: Pipelines, bucket: Path, index: bytes = b"PAR1" + b"\xff" * 99) -> None:
    base = begun_elsewhere(run, bucket)
    crawl = crawl_directory(run.directory / "here")
    (crawl / "captures.parquet").write_bytes(index)
    save(crawl, base.with_name(f"{base.name}.checkpoint-0").as_uri(), disk=Disk(), stopped=lambda: False)


def a_footer(run: Pipelines, bucket: Path) -> None:
    a_checkpoint(run, bucket, ABORTS.read_bytes())


def a_bucket(run: Pipelines, bucket: Path) -> None:
    base = begun_elsewhere(run, bucket)
    (base / "uploaded.json").write_bytes(b'{"files": [' + b"[" * 100_000)


def a_record(run: Pipelines, _: Path) -> None:
    odd: Any = {
        "url": b"\xff\xfe\0\n",
        "slug": b"../\0\x1b[2J",
        "queued_at": "1e999",
        "fetch_depth": "[]",
    }
    submit(run, POISONED, **odd)


def a_claim(run: Pipelines, _: Path) -> None:
    submit(run, POISONED)
    raw(run.store).rpush(run.store.keys.claim(POISONED), "x")


def a_log(run: Pipelines, _: Path) -> None:
    submit(run, POISONED)
    raw(run.store).set(f"{POISONED}_log", b"\xff" * 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("poison", "resumed"),
    [
        (a_checkpoint, "restarted"),
        (a_footer, "resumed"),
        (a_bucket, "restarted"),
        (a_record, None),
        (a_claim, None),
        (a_log, None),
    ],
)
def test_one_poisoned_thing_costs_its_own_job_a_restart_and_no_other_anything(
    run: Pipelines,
    tmp_path: Path,
    poison: Callable[[Pipelines, Path], None],
    resumed: str | None,
) -> None:
    poison(run, tmp_path / "bucket")
    submit(run, IDENTS[1])
    run.start(options=PipelineOptions(slots=2), bucket=(tmp_path / "bucket").as_uri())
    run.turn(ended(run, IDENTS[1], POISONED))
    submit(run, IDENTS[2])
    run.turn(ended(run, IDENTS[2]))
    client = raw(run.store)
    assert client.hget(POISONED, "amicrawl_resumed") == resumed
    for ident in (IDENTS[1], IDENTS[2]):
        assert client.hget(ident, "failed") is None
        assert client.hget(ident, "finished_at")
    if resumed == "restarted":
        assert "begun again from its start" in said(run, POISONED)
