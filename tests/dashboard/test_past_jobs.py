"""What became of jobs, listed when their records are gone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from dashboard.made_up_jobs import MadeUpJob
from dashboard_client import DashboardClient

from amicrawl.fleet.leases.lease import Claims

if TYPE_CHECKING:
    from amicrawl.fleet.database.connection import JobStore


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
