"""The campaign of jobs in short; `make job-campaign` runs hundreds of cases."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from jobs.campaign import FAULTS, MOODS, STEPS, CampaignRun, Case, cases
from object_store import CREDENTIALS

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer


class OvertakenRun(CampaignRun):
    """A run in which the files of the machine before arrive when those of the next one begin to."""

    def _noticed(self, what: str, key: str) -> None:
        if what == "PUT" and key.endswith("captures.parquet.open") and len(self._machines) > 1:
            start = key.removesuffix("captures.parquet.open")
            for name in ("captures.parquet", "crawl.json"):
                if not self.store.seen(start + name, lag=0.0):
                    self.store.write(start + name, b"of a machine that was frozen")
        super()._noticed(what, key)


CASES = [
    Case("end: account is there", "machine dies", "eventual"),
    Case("end: index", "signal", "good"),
    Case("end: reported", "loses redis", "good"),
    Case("takeover: end", "loses redis shortly", "good"),
]
KINDS = [CampaignRun, CampaignRun, CampaignRun, OvertakenRun]


@pytest.mark.timeout(600)
def test_whatever_happens_at_its_end_a_job_ends_whole(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bucket, index, record, figures and log say what the WARC files say, whoever ends the job."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setitem(os.environ, name, value)

    def faults_of(number: int) -> tuple[list[str], bool]:
        run = KINDS[number](CASES[number], redis_server, tmp_path / str(number), number)
        return run.run(), run.happened

    with ThreadPoolExecutor(len(CASES)) as pool:
        found = list(pool.map(faults_of, range(len(CASES))))
    assert found == [([], True)] * len(CASES)


def test_a_campaign_of_two_hundred_runs_has_each_fault_at_each_step() -> None:
    chosen = cases(200)
    assert {(case.step, case.fault) for case in chosen} == {(step, f) for step in STEPS for f in FAULTS}
    assert {case.mood for case in chosen} == set(MOODS)
