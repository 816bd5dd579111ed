"""One poisoned thing of each kind in Redis or a bucket: its job begins anew or is run, as others are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jobs.test_pipeline_parts import crawl_directory, manifest_in
from jobs.test_supervisor import IDENTS, Pipelines, ended, raw, said, stand_in, submit

from amicrawl.disk import Disk
from amicrawl.fleet.checkpoints.checkpoint import save
from amicrawl.fleet.database.redis_values import dead_letters
from amicrawl.fleet.jobs.pipeline import PipelineOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


def claimed(run: Pipelines, ident: str, **fields: str | bytes) -> None:
    """Write a claim as a client of Redis may, for a job that waits."""
    claim: dict[str, str | bytes] = {"token": "1", "attempt": "1", "state": "queued"}
    claim |= {"queued_at": "1700000000", **fields}
    raw(run.store).hset(run.store.keys.claim(ident), mapping=claim)


@pytest.mark.parametrize("directory", ["../outside", "{}/outside", "sub/outside"])
def test_no_claim_has_the_end_of_a_job_written_outside_the_data_directory(
    run: Pipelines, tmp_path: Path, directory: str
) -> None:
    submit(run, POISONED, abort_requested="true")
    claimed(run, POISONED, directory=directory.format(tmp_path), store="elsewhere")
    (tmp_path / "data" / "sub").mkdir(parents=True)
    run.start()
    run.turn(lambda: raw(run.store).get("jobs_aborted") == "1")
    assert not list(tmp_path.rglob("outside*"))


def test_no_claim_gives_a_job_the_directory_of_another(run: Pipelines) -> None:
    submit(run, IDENTS[1], "long")
    pipeline = run.start(options=PipelineOptions(slots=2))
    run.turn(lambda: pipeline.attempts and pipeline.attempts[0].child)
    [other] = pipeline.attempts
    base = other.claim.directory
    submit(run, POISONED)
    claimed(run, POISONED, directory=base, store=other.claim.store)
    run.turn(ended(run, POISONED))
    fence = json.loads((run.directory / "data" / base / "fence.json").read_bytes())
    assert fence == {"unit": IDENTS[1], "token": other.claim.token}
    assert pipeline.attempts == [other]
    assert other.is_running


@pytest.mark.parametrize("field", ["directory", "resumed", "run_id"])
def test_a_claim_that_is_no_text_ends_no_pipeline(run: Pipelines, field: str) -> None:
    submit(run, POISONED, abort_requested="true")
    claimed(run, POISONED, **{field: b"\xff\xfe"})
    run.start()
    run.turn(lambda: raw(run.store).get("jobs_aborted") == "1")


def test_a_last_line_that_is_no_text_ends_no_pipeline(run: Pipelines) -> None:
    line = r'{"message": "a \ud800 b"}'

    def command(ident: str, directory: Path) -> Sequence[str]:
        if ident != POISONED:
            return stand_in(ident, directory)
        return [sys.executable, "-c", f"print({line!r}); raise SystemExit(3)"]

    submit(run, POISONED)
    submit(run, IDENTS[1])
    run.start(options=PipelineOptions(slots=2, failures_borne=1), command=command)
    run.turn(ended(run, POISONED, IDENTS[1]))
    why = raw(run.store).hget(run.store.keys.claim(POISONED), "why")
    assert why == "the crawl ended with exit code 3: a ? b"


def test_whatever_goes_wrong_while_one_job_ends_is_the_fault_of_that_job(run: Pipelines) -> None:
    """Of its report here: nothing that is raised on purpose, and nothing of Redis or the disk."""

    class Falls(Disk):
        def rename(self, source: Path, target: Path) -> None:
            if target.name.endswith(f"{POISONED[:5]}.json"):
                raise KeyError("files")
            super().rename(source, target)

    submit(run, POISONED)
    submit(run, IDENTS[1], "long")
    pipeline = run.start(options=PipelineOptions(slots=2, failures_borne=1), disk=Falls())
    run.turn(lambda: len(pipeline.attempts) == 2)
    other = next(each for each in pipeline.attempts if each.ident == IDENTS[1])
    run.turn(lambda: pipeline.attempts == [other])
    assert other.is_running
    assert raw(run.store).hget(run.store.keys.claim(POISONED), "state") == "held", "its lease runs out"
    assert [letter.where for letter in dead_letters(run.store)] == [POISONED]
