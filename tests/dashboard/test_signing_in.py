"""Signing in: hashed secrets, the users file, sessions, roles, tokens, and being wrong too often."""

from __future__ import annotations

import json
import shutil
import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme
from dashboard_client import DashboardClient, until
from dashboard_serving import serve_in_thread

from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.fleet.dashboard.serving import Settings, serving_in_thread
from amicrawl.fleet.dashboard.users import Role, Users, hashed, matches
from amicrawl.fleet.dashboard.visitors import EVERY, IDLE, LONGEST, TRIES, Sessions, Throttle
from amicrawl.fleet.database.connection import RedisSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis_server import RedisServer

    from amicrawl.fleet.dashboard.serving import Running

PASSWORD = "correct horse battery"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def made_users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of users, made once: a password takes long to hash."""
    made = Users(tmp_path_factory.mktemp("users") / "users.json", disk=Disk())
    for name, role in (("vera", Role.view), ("otto", Role.operate), ("anna", Role.admin)):
        made.put(name, role=role, password=PASSWORD)
    return made.path


@pytest.fixture
def users(tmp_path: Path, made_users: Path) -> Users:
    return Users(Path(shutil.copy(made_users, tmp_path)), disk=Disk())


@pytest.fixture
def guarded(redis_server: RedisServer, users: Users) -> Iterator[Running]:
    with serve_in_thread(redis_server.url, users=users.path) as running:
        yield running


def signed_in(running: Running, name: str, password: str = PASSWORD) -> DashboardClient:
    api = DashboardClient(running.url)
    form = {"name": name, "password": password, "csrf_token": api.csrf, "next": "/pending"}
    response = api.client.post("/login", data=form)
    assert response.status_code == 303, response.text
    assert response.headers["location"] == "/pending"
    api.csrf = api.get("/session").json()["csrf"]
    return api


def test_a_password_is_kept_as_a_salted_hash_that_matches_nothing_else() -> None:
    kept = hashed(PASSWORD)
    assert kept != hashed(PASSWORD)
    assert PASSWORD not in kept
    assert matches(PASSWORD, kept)
    assert not matches(PASSWORD + " ", kept)


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "plain",
        "scrypt$14$8$1$x",
        "scrypt$60$8$1$AAAA$AAAA",
        "scrypt$14$8$9999$AA==$AA==",
        "scrypt$a$b$c$d$e",
        f"scrypt$17$1$1$AA==${'A' * 43}=",  # more than RFC 7914 lets blocks of that size be
    ],
)
def test_what_is_no_hash_matches_no_password(kept: str) -> None:
    assert not matches("", kept)
    assert not matches(kept, kept)


def test_the_users_file_is_for_its_owner_alone_and_holds_no_secret(users: Users) -> None:
    token = users.add_token("otto")
    text = users.path.read_text()
    assert stat.S_IMODE(users.path.stat().st_mode) == 0o600
    assert PASSWORD not in text
    assert token.rpartition(".")[2] not in text
    users.path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        Users(users.path, disk=Disk()).all()


def test_a_users_file_never_grows_beyond_what_is_read(users: Users) -> None:
    said = json.loads(users.path.read_bytes())
    room = 1024**2 - len(json.dumps(said, indent=2)) - 150
    said["users"]["tool"] = {"role": "view", "password": "x" * room}
    users.path.write_text(json.dumps(said))
    with pytest.raises(UsageError, match="more than 1 MiB"):
        users.put("y" * 60, role=Role.view, password=None)
    with pytest.raises(UsageError, match="more than 1 MiB"):
        users.add_token("anna")
    assert users.get("anna") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2, "users": {}}',
        '{"version": 1, "users": {"../x": {"role": "view"}}}',
        '{"version": 1, "users": {"x": {"role": "god"}}}',
        '{"version": 1, "users": {"x": {"role": "view", "password": 7}}}',
        '{"version": 1, "users": {"x": []}}',
    ],
)
def test_what_is_no_users_file_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InputError, match="amicrawl dashboard user add"):
        Users(path, disk=Disk()).all()


def test_a_user_has_so_many_jobs_at_once_and_an_admin_any_number(
    redis_server: RedisServer, users: Users
) -> None:
    with serve_in_thread(redis_server.url, users=users.path, jobs_per_user=2) as running:
        for name in ("otto", "anna"):
            token = users.add_token(name)
            with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
                client.headers["authorization"] = f"Bearer {token}"
                urls = [f"http://{name}-{number}.example/" for number in range(3)]
                responses = [client.post("/api/v1/jobs", json={"url": url}) for url in urls]
            codes = [response.status_code for response in responses]
            assert codes == ([201, 201, 409] if name == "otto" else [201] * 3)
            if name == "otto":
                assert "2 jobs of otto are queued or running" in responses[2].json()["detail"]
    with (
        pytest.raises(UsageError, match="--jobs-per-user counts by user"),
        serve_in_thread(redis_server.url, jobs_per_user=2),
    ):
        pass


def test_a_users_jobs_count_in_a_queue_that_is_new_and_behind_the_jobs_of_others(
    redis_server: RedisServer, users: Users
) -> None:
    with (
        serve_in_thread(redis_server.url, users=users.path, jobs_per_user=2) as running,
        httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client,
        redis_server.client() as redis,
    ):
        client.headers["authorization"] = f"Bearer {users.add_token('otto')}"

        def submitted(number: int, **said: str) -> int:
            body = {"url": f"http://site-{number}.example/", **said}
            return client.post("/api/v1/jobs", json=body).status_code

        assert [submitted(number, pipeline=f"big{number}") for number in range(3)] == [201, 201, 409]
        for key in redis.scan_iter("pending:*"):
            redis.delete(key)
        redis.lpush("pending", *(f"{number:025}" for number in range(1500)))
        assert [submitted(number) for number in range(10, 13)] == [201, 201, 409]


def test_a_session_ends_by_silence_by_age_and_when_there_are_too_many() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock, most=2)
    silent, used = sessions.begin("a", "hash"), sessions.begin("b", "hash")
    for _ in range(int(LONGEST / (IDLE - 1)) + 1):
        assert sessions.get(used) is not None
        clock.now += IDLE - 1
    assert sessions.get(silent) is None
    clock.now += IDLE - 1
    assert sessions.get(used) is None
    keys = [sessions.begin("c", "hash") for _ in range(3)]
    assert [sessions.get(key) is not None for key in keys] == [False, True, True]
    assert sessions.get("invented") is None


def test_a_session_ends_after_twelve_hours_of_silence_and_not_before() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    key = sessions.begin("a", "hash")
    clock.now += IDLE
    assert sessions.get(key) is not None
    clock.now += IDLE + 1
    assert clock.now < LONGEST, "its age alone would not end it"
    assert sessions.get(key) is None


def test_after_some_wrong_tries_one_comes_back_at_a_time() -> None:
    clock = Clock()
    throttle = Throttle(clock=clock)
    assert [throttle.taken("k") for _ in range(TRIES)] == [0] * TRIES
    assert 0 < throttle.taken("k") <= EVERY
    assert throttle.taken("other") == 0
    clock.now += EVERY
    assert throttle.taken("k") == 0
    assert throttle.taken("k") > 0
    throttle.returned("k")
    assert throttle.taken("k") == 0
    assert throttle.taken("k") > 0
    throttle.succeeded("k")
    assert throttle.taken("k") == 0


def test_who_has_not_signed_in_sees_nothing(guarded: Running) -> None:
    api = DashboardClient(guarded.url)
    for path in (
        "/jobs",
        "/status",
        "/pipelines",
        "/pending",
        "/finished",
        "/dead",
        "/events",
        "/users",
    ):
        assert api.get(path).status_code == 401, path
    for path in ("/", "/pipelines", "/pending", "/finished", "/submit", "/users"):
        response = api.page(path)
        assert response.status_code == 303, path
        assert response.headers["location"] == f"/login?next={path}"
    for path in ("/status", "/pending", "/pipelines", "/finished", "/logs/recent"):
        assert api.client.get(path).status_code == 401, path
    assert api.get("/session").json()["user"]["may_operate"] is False
    assert api.get("/openapi.json").status_code == 200


def test_each_role_may_what_it_is_for_and_no_more(guarded: Running) -> None:
    statuses = {}
    for name in ("vera", "otto", "anna"):
        api = signed_in(guarded, name)
        statuses[name] = [
            api.get("/jobs").status_code,
            api.post("/jobs", {"url": f"http://{name}.example/"}).status_code,
            api.get("/users").status_code,
            api.page("/submit").status_code,
            api.page("/users").status_code,
        ]
    assert statuses == {
        "vera": [200, 403, 403, 403, 403],
        "otto": [200, 201, 403, 200, 403],
        "anna": [200, 201, 200, 200, 200],
    }


def test_a_session_cookie_is_out_of_reach_of_scripts_and_other_sites(guarded: Running) -> None:
    api = DashboardClient(guarded.url)
    form = {"name": "vera", "password": PASSWORD, "csrf_token": api.csrf}
    cookie = api.client.post("/login", data=form).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie  # it is sent over HTTPS only where there is HTTPS


def test_over_https_a_session_cookie_is_sent_over_nothing_else(
    redis_server: RedisServer, users: Users, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    made = authority.issue_cert("localhost")
    made.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    settings = Settings(
        redis=RedisSettings(url=redis_server.url),
        host="localhost",
        port=0,
        users=users.path,
        certificate=tmp_path / "cert.pem",
        key=tmp_path / "key.pem",
    )
    verify = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with serving_in_thread(settings, disk=Disk()) as running:
        assert running.url.startswith("https://localhost:")
        api = DashboardClient(running.url, verify=verify)
        form = {"name": "vera", "password": PASSWORD, "csrf_token": api.csrf}
        response = api.client.post("/login", data=form, headers={"origin": running.url})
        assert "secure" in response.headers["set-cookie"].lower()
        assert api.get("/jobs").status_code == 200
        api.client.close()


@pytest.fixture
def behind_a_proxy(redis_server: RedisServer, users: Users) -> Iterator[Running]:
    with serve_in_thread(
        redis_server.url, users=users.path, trusted_proxies=("127.0.0.0/8",)
    ) as running:
        yield running


def test_a_trusted_proxy_says_whether_there_is_https_and_no_one_else(
    guarded: Running, behind_a_proxy: Running
) -> None:
    for running, is_believed in ((behind_a_proxy, True), (guarded, False)):
        api = DashboardClient(running.url)
        form = {"name": "vera", "password": PASSWORD, "csrf_token": api.csrf}
        scheme = "https" if is_believed else "http"
        origin = f"{scheme}://{running.url.removeprefix('http://')}"
        headers = {"x-forwarded-proto": "https", "origin": origin}
        response = api.client.post("/login", data=form, headers=headers)
        assert response.status_code == 303
        assert ("secure" in response.headers["set-cookie"].lower()) == is_believed


def tried(api: DashboardClient, number: int, password: str = "wrong password") -> int:
    form = {"name": f"nobody-{number}", "password": password, "csrf_token": api.csrf}
    headers = {"x-forwarded-for": f"192.0.2.{number}"}
    return api.client.post("/login", data=form, headers=headers).status_code


def test_an_address_that_a_header_names_is_not_believed(guarded: Running) -> None:
    api = DashboardClient(guarded.url)
    assert [tried(api, number) for number in range(TRIES + 2)] == [401] * TRIES + [429] * 2


def test_behind_a_trusted_proxy_each_address_has_tries_of_its_own(behind_a_proxy: Running) -> None:
    api = DashboardClient(behind_a_proxy.url)
    assert [tried(api, number) for number in range(TRIES + 2)] == [401] * (TRIES + 2)
    assert [tried(api, 200) for _ in range(TRIES + 1)] == [401] * TRIES + [429]


def test_an_address_of_ipv4_that_is_written_as_one_of_ipv6_has_tries_of_its_own(
    behind_a_proxy: Running,
) -> None:
    api = DashboardClient(behind_a_proxy.url)
    form = {"name": "vera", "password": "wrong password", "csrf_token": api.csrf}
    for number in range(TRIES + 1):
        for address in (f"::ffff:192.0.2.{number}", f"2001:db8:{number}::7"):
            response = api.client.post("/login", data=form, headers={"x-forwarded-for": address})
            assert response.status_code == 401


def test_what_could_not_be_checked_is_no_try(guarded: Running, users: Users) -> None:
    api = DashboardClient(guarded.url)
    users.path.chmod(0o644)
    assert [tried(api, number) for number in range(TRIES + 1)] == [503] * (TRIES + 1)
    users.path.chmod(0o600)
    assert signed_in(guarded, "vera").get("/jobs").status_code == 200


def test_of_tries_at_the_same_time_no_more_are_checked_than_there_are(guarded: Running) -> None:
    api = DashboardClient(guarded.url)
    with ThreadPoolExecutor(30) as pool:
        codes = list(pool.map(lambda number: tried(api, number), range(30)))
    assert sorted(codes) == [401] * TRIES + [429] * (30 - TRIES)


def test_requests_at_the_same_time_with_a_token_that_is_right_take_one_try(
    guarded: Running, users: Users
) -> None:
    bearer = {"authorization": f"Bearer {users.add_token('otto')}"}
    api = DashboardClient(guarded.url)
    with ThreadPoolExecutor(20) as pool:
        codes = list(pool.map(lambda _: api.get("/jobs", **bearer).status_code, range(20)))
    assert codes == [200] * 20


@pytest.mark.parametrize("proxy", ["proxy.example", "10.0.0.1/8", "*"])
def test_what_is_no_network_is_no_trusted_proxy(
    proxy: str, redis_server: RedisServer, users: Users
) -> None:
    with (
        pytest.raises(UsageError, match="--trusted-proxy"),
        serve_in_thread(redis_server.url, users=users.path, trusted_proxies=(proxy,)),
    ):
        pass


def test_signing_out_ends_the_session_and_not_the_cookie_alone(guarded: Running) -> None:
    api = signed_in(guarded, "vera")
    cookies = dict(api.client.cookies)
    assert api.client.post("/logout", data={"csrf_token": "wrong"}).status_code == 403
    assert api.get("/jobs").status_code == 200
    assert api.client.post("/logout", data={"csrf_token": api.csrf}).status_code == 303
    assert DashboardClient(guarded.url, cookies=cookies).get("/jobs").status_code == 401


def test_a_page_of_our_own_is_where_signing_in_leads_to_and_no_other(guarded: Running) -> None:
    api = DashboardClient(guarded.url)
    for target in (
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/a\nb",
    ):
        form = {"name": "vera", "password": PASSWORD, "csrf_token": api.csrf, "next": target}
        assert api.client.post("/login", data=form).headers["location"] == "/"


def test_who_is_wrong_too_often_has_to_wait_even_with_the_right_password(guarded: Running) -> None:
    api = DashboardClient(guarded.url)
    form = {"name": "anna", "password": "wrong password", "csrf_token": api.csrf}
    assert [api.client.post("/login", data=form).status_code for _ in range(TRIES)] == [401] * TRIES
    response = api.client.post("/login", data={**form, "password": PASSWORD})
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0


def test_a_token_stands_for_its_user_and_needs_no_csrf(guarded: Running, users: Users) -> None:
    token = users.add_token("otto")
    bearer = {"authorization": f"Bearer {token}"}
    api = DashboardClient(guarded.url)
    api.csrf = ""
    assert api.post("/jobs", {"url": "http://token.example/"}, **bearer).status_code == 201
    assert api.get("/users", **bearer).status_code == 403
    for wrong in (token[:-1], "otto..", "nobody.a.b", ".", "é"):
        sent = {b"authorization": f"Bearer {wrong}".encode()}
        assert api.client.get("/api/v1/jobs", headers=sent).status_code in {401, 429}, wrong
    users.remove("otto")
    assert api.get("/jobs", **bearer).status_code in {401, 429}


def test_a_user_who_is_changed_or_removed_is_out_with_the_next_request(
    guarded: Running, users: Users
) -> None:
    vera, otto = signed_in(guarded, "vera"), signed_in(guarded, "otto")
    users.put("otto", role=Role.view, password=None)
    assert otto.post("/jobs", {"url": "http://late.example/"}).status_code == 403
    users.put("otto", role=Role.operate, password="another password")
    assert otto.get("/jobs").status_code == 401
    users.remove("vera")
    assert vera.get("/jobs").status_code == 401


@pytest.mark.parametrize("is_damaged", [True, False])
def test_while_the_users_file_cannot_be_read_the_log_says_why_and_no_client_is_told(
    guarded: Running, users: Users, caplog: pytest.LogCaptureFixture, *, is_damaged: bool
) -> None:
    token, before = users.add_token("otto"), users.path.read_bytes()
    browser, tool = signed_in(guarded, "vera"), httpx.Client(base_url=guarded.url, trust_env=False)
    if is_damaged:
        users.path.write_bytes(b"{")
    else:
        users.path.chmod(0o644)
    form = {"name": "anna", "password": PASSWORD, "csrf_token": DashboardClient(guarded.url).csrf}
    bearer = {"authorization": f"Bearer {token}"}
    for response in (
        browser.get("/jobs"),
        browser.page("/"),
        browser.get("/events"),
        tool.get("/api/v1/jobs", headers=bearer),
        tool.post("/login", data=form),
    ):
        assert response.status_code == 503
        assert "The users file cannot be read" in response.text
        assert users.path.name not in response.text
    assert caplog.text.count("No user can sign in") == 1
    assert str(users.path) in caplog.text
    assert "Traceback" not in caplog.text
    users.path.write_bytes(before)
    users.path.chmod(0o600)
    assert browser.get("/jobs").status_code == 200
    assert tool.get("/api/v1/jobs", headers=bearer).status_code == 200
    tool.close()


def test_an_admin_manages_users_over_the_api_and_stays_one(guarded: Running, users: Users) -> None:
    anna = signed_in(guarded, "anna")
    added = anna.post("/users", {"name": "nina", "role": "operate", "password": "a new password"})
    assert {"name": "nina", "role": "operate", "has_password": True, "tokens": 0} in added.json()[
        "users"
    ]
    token = anna.post("/users/nina/token").json()["token"]
    assert DashboardClient(guarded.url).get("/jobs", authorization=f"Bearer {token}").status_code == 200
    assert (
        anna.post("/users", {"name": "nina", "role": "operate", "password": "short"}).status_code == 422
    )
    assert anna.post("/users", {"name": "../n", "role": "view"}).status_code == 422
    assert anna.post("/users/anna/remove").status_code == 409
    assert anna.post("/users", {"name": "anna", "role": "view"}).status_code == 409
    assert anna.post("/users/nina/remove").status_code == 200
    assert anna.post("/users/nina/remove").status_code == 422
    assert json.loads(users.path.read_text())["users"].keys() == {"vera", "otto", "anna"}


def test_a_stream_ends_when_the_dashboard_does(redis_server: RedisServer) -> None:
    with serve_in_thread(redis_server.url) as running:
        api = DashboardClient(running.url)
        events = api.events()
        assert next(events)[0] == "hello"
        until(lambda: running.hub.viewers == 1)
    assert [name for name, _, _ in events if name != "overview"] == []
    assert not running.thread.is_alive()
