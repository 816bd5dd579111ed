"""A setting of jobs is declared once: a made-up one is in all that follows from the declaration."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from amicrawl.cli.job.settings import command_of, given_in, options_of
from amicrawl.errors import UsageError
from amicrawl.fleet.dashboard.api import operations
from amicrawl.fleet.dashboard.app import Hosts, application, site_of
from amicrawl.fleet.dashboard.operations import document
from amicrawl.fleet.dashboard.views import settings_view
from amicrawl.fleet.jobs.job_settings import SETTINGS, JobSetting, NumberKind, SettingField
from amicrawl.fleet.jobs.live_settings import live_settings
from amicrawl.fleet.jobs.submission import Submission, submit

if TYPE_CHECKING:
    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

URL = "http://a.example/"
FIELD = SettingField(
    name="most_pictures",
    argument="number",
    kind=NumberKind(1, 500, 900, unit="pictures"),
    label="Pictures at most",
    meaning="Pictures that are fetched at most.",
    default=40,
)
MADE_UP = JobSetting(
    name="picture_limit",
    title="Pictures of a job",
    word="Pictures",
    meaning="Set how many pictures are fetched.",
    example="7",
    is_live=True,
    fields=(FIELD,),
)
DECLARED = (*SETTINGS, MADE_UP)
TABLE = Path(__file__).parents[2] / ".ci" / "reference.py"


class InProcess:
    """Requests to a dashboard with the made-up setting, without a socket."""

    def __init__(self, store: JobStore) -> None:
        site = replace(site_of(store, users=None, archives=None), job_settings=DECLARED)
        self._app = application(site, hosts=Hosts("127.0.0.1"))

    def send(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, **given)

        return asyncio.run(send())

    def page(self, path: str) -> str:
        return self.send("GET", path, headers={"accept": "text/html"}).text


@pytest.fixture
def dashboard(store: JobStore) -> InProcess:
    return InProcess(store)


def submitted(store: JobStore, **values: int) -> str:
    return submit(store, Submission(url=URL, settings=values), now=1.0, declared=DECLARED).ident


def test_a_submission_stores_the_default_or_what_it_says_and_its_check_has_the_bounds(
    store: JobStore,
) -> None:
    with pytest.raises(UsageError, match="501 is out of range: 1 to 500"):
        submitted(store, most_pictures=501)
    assert store.client.dbsize() == 0
    ident = submitted(store)
    assert store.client.hget(ident, "most_pictures") == "40"
    store.client.flushall()
    assert store.client.hget(submitted(store, most_pictures=3), "most_pictures") == "3"


def test_a_crawl_and_the_page_of_a_job_read_it_from_the_record() -> None:
    read = live_settings("1", {"most_pictures": "900"}, [], [], declared=DECLARED)
    assert read.values["most_pictures"] == 900
    read = live_settings("1", {"most_pictures": "901"}, [], [], declared=DECLARED)
    assert read.values["most_pictures"] is None
    assert read.faults == ("most_pictures: '901' is not a whole number from 0 to 900",)
    assert settings_view({"most_pictures": "9"}, DECLARED)["most_pictures"] == 9


def test_the_command_line_has_its_option_and_its_verb_with_help(
    store: JobStore, redis_server: RedisServer
) -> None:
    options = options_of(DECLARED)
    assert given_in(options(picture_limit=9, note=""), DECLARED) == {"most_pictures": 9}
    app = typer.Typer()
    app.command()(command_of(MADE_UP))
    told = CliRunner().invoke(app, ["--help"]).output
    assert MADE_UP.meaning in told
    assert FIELD.meaning in told
    ident = submitted(store)
    done = CliRunner().invoke(app, ["--redis", redis_server.url, ident, "7"])
    assert done.output == "The picture limit is 7 pictures now.\n"
    assert store.client.hget(ident, "most_pictures") == "7"


def test_the_api_describes_checks_and_does_it(store: JobStore, dashboard: InProcess) -> None:
    described = document(operations(DECLARED))
    schemas = described["components"]["schemas"]
    bounds = schemas["Submit"]["properties"]["most_pictures"]["anyOf"][0]
    assert (bounds["minimum"], bounds["maximum"]) == (1, 500)
    assert schemas["PictureLimit"]["properties"]["number"]["description"] == FIELD.meaning
    assert described["paths"]["/api/v1/jobs/{ident}/picture-limit"]["post"]["summary"] == MADE_UP.meaning
    token = {"x-csrf-token": dashboard.send("GET", "/api/v1/session").json()["csrf"]}

    def post(path: str, body: Any) -> Any:
        return dashboard.send("POST", f"/api/v1{path}", json=body, headers=token)

    assert post("/jobs", {"url": URL, "most_pictures": 0}).status_code == 422
    ident = post("/jobs", {"url": URL, "most_pictures": 8}).json()["ident"]
    assert store.client.hget(ident, "most_pictures") == "8"
    assert post(f"/jobs/{ident}/picture-limit", {"number": 501}).status_code == 422
    assert post(f"/jobs/{ident}/picture-limit", {"number": 5}).status_code == 200
    assert store.client.hget(ident, "most_pictures") == "5"


def test_the_form_of_the_dashboard_has_it_and_its_dialogs_know_it(dashboard: InProcess) -> None:
    page = dashboard.page("/submit")
    control = re.search(r'<input id="most_pictures"[^>]*>', page)
    assert control is not None
    assert 'name="most_pictures" type="number" min="1" max="500"' in control[0]
    assert 'placeholder="40"' in control[0]
    data = re.search(r'id="job-settings">(.*?)</script>', page)
    assert data is not None
    [declared] = [setting for setting in json.loads(data[1]) if setting["name"] == "picture-limit"]
    assert (declared["isLive"], declared["word"]) == (True, "Pictures")
    assert (declared["fields"][0]["least"], declared["fields"][0]["most"]) == (1, 500)


def test_the_table_of_the_documentation_has_its_row() -> None:
    rows = runpy.run_path(str(TABLE))["job_rows"](DECLARED)
    row = "| `most_pictures` | Pictures that are fetched at most. | 1 to 500 pictures | 40 "
    assert rows[-1] == row + "| `--picture-limit` | `picture-limit` |"


def test_every_setting_of_a_job_is_in_the_form_or_says_that_it_is_not(dashboard: InProcess) -> None:
    names = set(re.findall(r' name="(\w+)"', dashboard.page("/submit")))
    for setting in DECLARED:
        assert ({field.name for field in setting.fields} <= names) is setting.is_submitted
