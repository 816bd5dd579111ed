"""`amicrawl dashboard`: users come and go, and what cannot be served is said in a sentence."""

from __future__ import annotations

import ctypes
import logging
import signal
import subprocess
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING

import pytest
import warm_processes
from dashboard_client import until
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.cli.options import check_installed
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode, InputError, UsageError
from amicrawl.fleet.dashboard.serving import Settings, serve
from amicrawl.fleet.dashboard.users import Role, Users
from amicrawl.fleet.database.connection import RedisSettings

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "correct horse battery"


def run(*arguments: object, password: str = PASSWORD) -> str:
    """Run the command and return what it printed."""
    result = CliRunner().invoke(
        app,
        ["dashboard", *map(str, arguments)],
        env={"AMICRAWL_DASHBOARD_PASSWORD": password},
        catch_exceptions=False,
    )
    return result.output


def test_a_user_is_added_changed_listed_and_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    run("user", "add", "anna", "--role", "admin", "--users", file)
    token = run("user", "add", "bot", "--role", "operate", "--token", "--users", file).strip()
    users = Users(file, disk=Disk())
    assert users.signed_in("anna", PASSWORD) is not None
    assert (users.bearer(token) or users.all()["anna"]).name == "bot"
    run("user", "add", "anna", "--role", "view", "--users", file, password="another password")
    assert users.all()["anna"].role is Role.view
    assert users.signed_in("anna", PASSWORD) is None
    assert run("user", "ls", "--users", file).splitlines() == [
        "anna\tview\ta password",
        "bot\toperate\t1 token",
    ]
    run("user", "remove", "bot", "--users", file)
    assert users.bearer(token) is None


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (("user", "add", "a b", "--role", "view", "--users", "{}/u.json"), UsageError, "letters"),
        (("user", "remove", "anna", "--users", "{}/u.json"), UsageError, "There is no user"),
        (("user", "ls", "--users", "{}/nowhere/u.json"), InputError, "not a directory"),
        (("--host", "0.0.0.0"), UsageError, "--users"),
        (("--certificate", "{}/c.pem"), UsageError, "--key"),
        (("--certificate", "{}/c.pem", "--key", "{}/c.pem"), InputError, "certificate and its key"),
        (("--archives", "{}/nowhere"), InputError, "not a directory"),
        (("user", "ls", "--users", "{}"), InputError, "is not a file"),
        (("--redis", "http://localhost/"), UsageError, "redis://"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], error: type[Exception], sentence: str
) -> None:
    (tmp_path / "c.pem").write_text("nothing of OpenSSL's")
    with pytest.raises(error, match=sentence):
        run(*(word.format(tmp_path) for word in arguments))


@pytest.mark.parametrize(("password", "other"), [("short", "longer"), ("x" * 1025, "shorter")])
def test_a_password_of_a_bad_length_is_refused_and_nothing_is_written(
    tmp_path: Path, password: str, other: str
) -> None:
    with pytest.raises(UsageError, match=f"10 to 1024 characters. Choose a {other} one"):
        run("user", "add", "anna", "--role", "view", "--users", tmp_path / "u.json", password=password)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_installed_is_named_with_what_to_run() -> None:
    with pytest.raises(UsageError, match=r"starlette.*pip install 'amicrawl\[dashboard\]'"):
        check_installed("dashboard", "h11", "starlette", find={"h11": True}.get)
    check_installed("dashboard", "h11", "starlette")


def test_it_serves_until_a_signal_and_ends_well() -> None:
    command = [
        sys.executable,
        "-m",
        "amicrawl",
        "dashboard",
        "--port",
        "0",
        "--redis",
        "redis://127.0.0.1:1/0",
    ]
    with warm_processes.Popen(command, stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr is not None
        told = next(line for line in served.stderr if "The dashboard is at" in line)
        url = told.split(" at ")[1].partition(",")[0]
        with urllib.request.urlopen(f"{url}/api/v1/session", timeout=60) as found:
            assert found.status == 200
        served.send_signal(signal.SIGTERM)
        assert served.wait(timeout=60) == ExitCode.DONE


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_that_ends_by_itself_is_no_good_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def end_server() -> None:
        until(lambda: "The dashboard is at" in caplog.text)
        (server,) = (thread for thread in threading.enumerate() if thread.name == "dashboard")
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(server.ident or 0), ctypes.py_object(SystemExit)
        )

    threading.Thread(target=end_server, daemon=True).start()
    settings = Settings(port=0, redis=RedisSettings(url="redis://127.0.0.1:1/0"))
    with pytest.raises(AmicrawlError, match=r"ended by itself") as raised:
        serve(settings, disk=Disk())
    assert raised.value.exit_code is ExitCode.OUR_ERROR
