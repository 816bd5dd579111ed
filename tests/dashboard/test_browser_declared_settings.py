"""A live setting is declared once: one more has its dialog, which changes it in Redis."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from dashboard.browsing import expect, open_page, visit
from dashboard.test_browser_whole_way import address_in
from dashboard.test_declared_settings import FIELD, MADE_UP, submitted
from loopback import PROJECT, environment

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser
    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

WITH_ONE_MORE = f"""
import runpy
from amicrawl.fleet.jobs import job_settings
from amicrawl.fleet.jobs.job_settings import JobSetting, NumberKind, SettingField
job_settings.SETTINGS = (*job_settings.SETTINGS, {MADE_UP!r})
runpy.run_module("amicrawl", run_name="__main__", alter_sys=True)
"""
"""A program as it is once the declaration is in its module: everything else is imported afterwards."""


def test_a_dialog_changes_a_setting_that_is_declared_and_its_page_shows_the_new_value(
    store: JobStore, redis_server: RedisServer, browser: Browser, tmp_path: Path
) -> None:
    ident, log = submitted(store), tmp_path / "log"
    line = [sys.executable, "-c", WITH_ONE_MORE, "dashboard", "--port", "0", "--redis", redis_server.url]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            line, cwd=PROJECT, env=environment(), stdout=output, stderr=output
        ) as dashboard,
    ):
        try:
            with open_page(browser) as shown:
                visit(shown, f"{address_in(log, dashboard)}/jobs/{ident}")
                value = shown.locator('[data-setting="picture-limit"]')
                expect(value).to_have_text("40 pictures")
                shown.locator('[data-verb="picture-limit"]').click()
                dialog = shown.locator("dialog")
                dialog.get_by_label(FIELD.label).fill("501")
                dialog.get_by_role("button", name="Set").click()
                dialog.get_by_text("a whole number from 1 to 500").wait_for()
                dialog.get_by_label(FIELD.label).fill("7")
                dialog.get_by_role("button", name="Set").click()
                expect(value).to_have_text("7 pictures")
        finally:
            dashboard.terminate()
    assert store.client.hget(ident, "most_pictures") == "7"
