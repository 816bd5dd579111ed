"""What became of jobs, listed when their records are gone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from dashboard.made_up_jobs import MadeUpJob, running_job
from dashboard_client import DashboardClient

from amicrawl.fleet.dashboard.board import Board
from amicrawl.fleet.leases.lease import Claims

if TYPE_CHECKING:
    from amicrawl.fleet.database.connection import JobStore
    from amicrawl.fleet.jobs.watching import SeenJob


def test_of_many_jobs_those_that_ended_last_are_looked_at(store: JobStore) -> None:
    looked_at: list[str] = []

    def has_summary(ident: str, _: SeenJob) -> bool:
        looked_at.append(ident)
        return False

    for number in range(20):
        MadeUpJob.queued(store, f"https://queued-{number}.example/")
    ended = [running_job(store, f"https://ended-{number}.example/") for number in range(9)]
    for ago, job in enumerate(ended):
        job.end(aborted=ago % 2 == 1, ago=60 * ago)
    store.client.hset(store.keys.job(ended[0].ident), "failed", "true")
    found = Board(store, has_summary=has_summary).ended(most=4)
    assert [job["ident"] for job in found] == [job.ident for job in ended[:4]]
    assert [job["state"] for job in found] == ["failed", "aborted", "completed", "aborted"]
    assert sorted(looked_at) == sorted(job.ident for job in ended[:4])


def test_jobs_that_ended_long_ago_are_listed_and_searched(store: JobStore, address: str) -> None:
    claims = Claims(store)
    jobs = [
        MadeUpJob.queued(store, f"https://site-{number}.example.org/", started_by="anna")
        for number in range(120)
    ]
    for job in jobs:
        claim = claims.reserve(["pending"], "pipeline:a", timedelta(minutes=1))
        assert claim is not None
        job.count(r2xx=3, items_downloaded=3)
        claims.finish(claim.unit, claim.token, info="{}")
    for job in jobs[:100]:
        store.client.delete(*store.keys.of_job(job.ident))
    api = DashboardClient(address)
    listed = api.get("/finished?limit=1000").json()["jobs"]
    assert {job["url"] for job in listed} == {job.url for job in jobs}
    assert all(job["state"] == "completed" and job["finished_at"] for job in listed)
    page = api.page("/finished").text
    assert "120 of 120 jobs" in page
    assert page.count("<tr data-ident") == 100
    second = api.page("/finished?page=2").text
    assert second.count("<tr data-ident") == 20
    found = api.page("/finished?search=site-7.example").text
    assert "1 of 120 jobs" in found
    assert f'href="/jobs/{jobs[7].ident}"' not in found, "its record is gone"
    assert f'href="/jobs/{jobs[110].ident}"' in api.page("/finished?search=site-110.").text
