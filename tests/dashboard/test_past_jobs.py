"""What became of jobs, listed when their records are gone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from dashboard.made_up_jobs import MadeUpJob, running_job
from dashboard_client import DashboardClient

from amicrawl.fleet.dashboard.board import Board
from amicrawl.fleet.dashboard.job_choice import JobChoice
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


def test_of_many_pages_of_ended_jobs_only_the_one_that_is_shown_is_read_in_full(store: JobStore) -> None:
    looked_at: list[str] = []

    def has_summary(ident: str, _: SeenJob) -> bool:
        looked_at.append(ident)
        return False

    jobs = [running_job(store, f"https://site-{number}.example/") for number in range(230)]
    for ago, job in enumerate(jobs):
        job.facts(hosts=[{"host": f"host-{ago}.example.org"}])
        job.end(ago=60 * ago)
    board = Board(store, has_summary=has_summary)
    page = board.finished(JobChoice(page=2), most=220, most_past=10)
    assert [job["ident"] for job in page.jobs] == [job.ident for job in jobs[100:200]]
    assert (page.found, page.all, len(page.idents)) == (220, 220, 230)
    assert sorted(looked_at) == sorted(job["ident"] for job in page.jobs)
    found = board.finished(JobChoice(search="host-17.example"), most=220, most_past=10)
    assert ([job["ident"] for job in found.jobs], found.found) == ([jobs[17].ident], 1)
    looked_at.clear()
    latest = board.jobs(["completed"], JobChoice(search="SITE-2"), most=3)
    assert [job["ident"] for job in latest] == [jobs[number].ident for number in (2, 20, 21)]
    assert len(looked_at) == 3


def test_ends_that_are_no_times_and_names_of_several_lines_hide_no_job(store: JobStore) -> None:
    jobs = [running_job(store, f"https://site-{number}.example/") for number in range(4)]
    for job in jobs:
        job.end()
    client, keys = store.client, store.keys
    client.hset(keys.job(jobs[1].ident), "finished_at", "9" * 50)
    client.hset(keys.job(jobs[2].ident), "finished_at", "yesterday - 1 2 3")
    client.delete(keys.job(jobs[3].ident))
    client.set(keys.job(jobs[3].ident), "a text")
    client.set(f"a\n{jobs[3].ident}\n", "a name of three lines")
    client.xadd(keys.ended, {"ident": "no\nident", "url": "https://a.example/", "finished_at": "1"})
    client.xadd(keys.ended, {"ident": jobs[2].ident, "url": b"\xff\x00", "finished_at": "1"})
    page = Board(store, has_summary=lambda *_: False).finished(JobChoice(), most=10, most_past=10)
    assert [(job["ident"], job["state"]) for job in page.jobs] == [
        (jobs[0].ident, "completed"),
        (jobs[2].ident, "completed"),
    ]
    assert page.all == len(page.jobs)


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
