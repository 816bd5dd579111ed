"""The report over what a finished job has captured: made once, and only of what is that job's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dashboard_client import IDENT, OTHER, DashboardClient, run_job
from dashboard_serving import serve_in_thread

from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.summaries import INDEX, Summaries
from amicrawl.fleet.jobs.watching import SeenJob
from amicrawl.record import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer

BASE = f"a.example-inf-20261121-120000-{IDENT[:5]}"
ENDED = {"url": "http://a.example/", "slug": "a.example-inf", "finished_at": "1700000000"}


def archive(directory: Path, base: str = BASE) -> Path:
    """Write the index of a crawl that captured nothing."""
    (directory / base).mkdir()
    pq.write_table(pa.Table.from_pylist([], schema=CAPTURES), directory / base / INDEX)
    return directory / base / INDEX


def test_a_finished_job_has_a_report_behind_a_policy_of_its_own(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    archive(tmp_path)
    with redis_server.client() as client:
        run_job(client, IDENT, finished_at=1_700_000_100, slug="a.example-inf")
        run_job(client, OTHER)
    with serve_in_thread(redis_server.url, archives=tmp_path) as running:
        api = DashboardClient(running.url)
        assert api.get(f"/jobs/{IDENT}").json()["has_summary"] is True
        response = api.page(f"/finished/{IDENT}/summary")
        assert response.status_code == 200, response.text
        url = api.get(f"/jobs/{IDENT}").json()["url"]
        assert f"<h1>Summary of {url}</h1>" in response.text
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "sandbox" in policy
        assert "script" not in policy
        assert api.page(f"/finished/{OTHER}/summary").status_code == 404
        assert api.page("/finished/../summary").status_code == 404


def test_a_report_is_made_once_for_an_index_and_one_that_is_damaged_is_told(tmp_path: Path) -> None:
    index = archive(tmp_path)
    summaries = Summaries(tmp_path)
    first = summaries.page(IDENT, SeenJob(ENDED))
    assert summaries.page(IDENT, SeenJob(ENDED)) is first
    index.write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(Problem) as told:
        summaries.page(IDENT, SeenJob(ENDED))
    assert told.value.status == 500


@pytest.mark.parametrize(
    "said",
    [
        "/etc",
        "../../etc",
        f"../{BASE}",
        "/data/..",
        f"other-{OTHER[:5]}",
        ".",
        "",
        "x" * 9000,
        "\x00",
    ],
)
def test_no_directory_that_redis_names_leads_elsewhere(tmp_path: Path, said: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    archive(tmp_path)
    archive(inside, f"other-{OTHER[:5]}")
    now = json.dumps({"directory": said})
    seen = SeenJob({**ENDED, "slug": "../"}, {"now": now})
    assert not Summaries(inside).has(IDENT, seen)


def test_a_job_that_runs_or_whose_files_are_elsewhere_has_no_report(tmp_path: Path) -> None:
    archive(tmp_path)
    running = {name: text for name, text in ENDED.items() if name != "finished_at"}
    assert not Summaries(tmp_path).has(IDENT, SeenJob(running))
    assert not Summaries(tmp_path).has(IDENT, SeenJob({**ENDED, "slug": "b.example-inf"}))
    assert not Summaries(None).has(IDENT, SeenJob(ENDED))
    assert Summaries(tmp_path).has(IDENT, SeenJob(ENDED))
