"""The guard: foreign hosts and origins, forged requests, sizes, headers, and who may listen where."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest
from dashboard_client import DashboardClient
from dashboard_serving import serve_in_thread
from loopback import free_port

from amicrawl.disk import Disk
from amicrawl.errors import UsageError
from amicrawl.fleet.dashboard.api import operations
from amicrawl.fleet.dashboard.app import BODY_LIMIT, Hosts
from amicrawl.fleet.dashboard.operations import PREFIX
from amicrawl.fleet.dashboard.serving import Settings, serving_in_thread
from amicrawl.fleet.dashboard.users import Role, Users
from amicrawl.fleet.dashboard.visitors import may_change
from amicrawl.fleet.database.connection import RedisSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.dashboard.serving import Running


@pytest.fixture(scope="module")
def running(shared_redis: RedisServer) -> Iterator[Running]:
    with serve_in_thread(shared_redis.url) as found:
        yield found


@pytest.fixture
def api(redis_server: RedisServer, running: Running) -> DashboardClient:
    return DashboardClient(running.url)


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("localhost:8650", True),
        ("127.0.0.1", True),
        ("[::1]:8650", True),
        ("LOCALHOST", True),
        ("localhost.", True),
        ("dash.example:8650", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("localhost@evil.example", False),
        ("localhost:8650:1", False),
        ("localhost/..", False),
        ("10.0.0.1", False),
    ],
)
def test_only_names_of_our_own_are_served(host: str, is_ours: bool) -> None:
    assert Hosts("127.0.0.1", ["dash.example"]).allows(host) is is_ours


def test_bound_to_all_addresses_any_address_is_ours_and_any_name_is_not() -> None:
    hosts = Hosts("0.0.0.0")
    assert hosts.allows("192.0.2.7:8650")
    assert hosts.allows("[2001:db8::7]")
    assert not hosts.allows("rebound.example")


def health(url: str) -> tuple[int, str]:
    """Send a request as a kubelet does, which knows no name of the dashboard's."""
    response = httpx.get(
        f"{url}/healthz", headers={"Host": "10.9.8.7:8650"}, timeout=30, trust_env=False
    )
    return response.status_code, response.text


def test_a_probe_learns_whether_redis_responds_and_nothing_else(
    running: Running, redis_server: RedisServer
) -> None:
    assert health(running.url) == (200, "ok\n")
    with serve_in_thread(f"redis://127.0.0.1:{free_port()}/0") as cut_off:
        assert health(cut_off.url) == (503, "Redis does not respond\n")


@pytest.mark.parametrize(
    ("origin", "site", "may"),
    [
        (None, None, True),
        ("http://localhost:1", None, True),
        ("http://localhost:1", "same-origin", True),
        ("http://localhost:2", None, False),
        ("https://localhost:1", None, False),
        ("null", None, False),
        ("http://evil.example", "cross-site", False),
        (None, "cross-site", False),
        (None, "same-site", False),
        ("http://localhost:1", "same-site", False),
    ],
)
def test_a_change_comes_from_our_own_page_or_from_none(
    origin: str | None, site: str | None, may: bool
) -> None:
    assert may_change(origin=origin, fetch_site=site, own="http://localhost:1") is may


def test_a_rebound_name_gets_421(api: DashboardClient) -> None:
    for path in ("/", "/api/v1/jobs", "/static/app.js", "/api/v1/session"):
        response = api.client.get(path, headers={"host": "rebound.example:8650"})
        assert response.status_code == 421, path
        assert "csrf" not in response.text


def test_two_hosts_are_none(running: Running) -> None:
    port = int(running.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(b"GET /api/v1/session HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert raw.recv(4096).split(b" ", 2)[1] in {b"400", b"421"}


def test_every_change_needs_the_token_and_our_origin(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    changes = [operation for operation in operations() if operation.method == "POST"]
    assert len(changes) > 15
    with redis_server.client() as client:
        before = client.dbsize()
        for operation in changes:
            path = operation.path.format(ident="1q2qydhkeh3gfnrcxuf6py70b", id="0" * 32, name="x")
            own = {"x-csrf-token": api.csrf}
            for headers in (
                {},
                {"x-csrf-token": "0" * 64},
                {**own, "origin": "http://evil.example"},
                {**own, "origin": "null"},
                {**own, "sec-fetch-site": "cross-site"},
                {**own, "sec-fetch-site": "same-site"},
            ):
                response = api.client.post(PREFIX + path, json={}, headers=headers)
                assert response.status_code == 403, (path, headers)
        assert client.dbsize() == before


def test_a_form_of_another_site_is_no_json(api: DashboardClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = api.client.post(
            "/api/v1/jobs",
            content='{"url": "http://forged.example/"}',
            headers={"content-type": kind, "x-csrf-token": api.csrf},
        )
        assert response.status_code == 415


def test_nothing_is_changed_by_get(api: DashboardClient, redis_server: RedisServer) -> None:
    ident = api.submit()
    with redis_server.client() as client:

        def state() -> dict[str, object]:
            return {
                key: client.hgetall(key) if client.type(key) == "hash" else client.type(key)
                for key in sorted(client.scan_iter())
            }

        before = state()
        for operation in operations():
            path = PREFIX + operation.path.format(ident=ident, id="0" * 32, name="x")
            if operation.serve is None:
                for method in ("GET", "HEAD"):
                    response = api.client.request(method, path, headers={"x-csrf-token": api.csrf})
                    assert response.status_code in {200, 404, 405, 409}, path
        for path in (
            "/",
            f"/jobs/{ident}",
            "/pending",
            "/submit",
            "/finished",
            "/logout",
            f"/ignores/{ident}",
        ):
            api.page(path)
        assert state() == before


def test_a_body_beyond_the_limit_is_not_read(api: DashboardClient, running: Running) -> None:
    large = "x" * (BODY_LIMIT + 1)
    assert api.post("/jobs", {"url": large}).status_code == 413

    def drops() -> Iterator[bytes]:
        for _ in range(BODY_LIMIT // 1024 + 2):
            yield b" " * 1024

    headers = {"content-type": "application/json", "x-csrf-token": api.csrf}
    response = api.client.post("/api/v1/jobs", content=drops(), headers=headers)
    assert response.status_code == 413
    response = api.client.post(
        "/login", content=drops(), headers={"content-type": "application/x-www-form-urlencoded"}
    )
    assert response.status_code == 413


def test_every_response_tells_the_browser_what_it_may_not_do(api: DashboardClient) -> None:
    for path in ("/", "/nowhere", "/static/app.js", "/api/v1/jobs", "/api/v1/nowhere", "/pending"):
        headers = api.page(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_another_sites_page_may_lead_here_and_not_read_the_api(api: DashboardClient) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert (
        api.client.get("/api/v1/jobs", headers={**foreign, "sec-fetch-mode": "cors"}).status_code == 403
    )
    assert (
        api.client.get("/api/v1/events", headers={**foreign, "sec-fetch-mode": "cors"}).status_code
        == 403
    )
    assert api.page("/", **foreign, **{"sec-fetch-mode": "navigate"}).status_code == 200


def test_files_outside_of_ours_are_not_served(api: DashboardClient) -> None:
    for path in (
        "/static/../serving.py",
        "/static/%2e%2e/serving.py",
        "/static/..%2f..%2ferrors.py",
        "/static//etc/passwd",
    ):
        response = api.client.get(path)
        assert response.status_code == 404, path


def test_a_name_of_a_proxy_without_users_is_refused_with_what_to_do() -> None:
    with (
        pytest.raises(UsageError, match="--allow-host dash"),
        serve_in_thread("redis://127.0.0.1:1/0", allow_hosts=("dash.example",)),
    ):
        pass


def test_a_public_address_without_users_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for users in (None, tmp_path / "none.json"):
        with (
            pytest.raises(UsageError, match="amicrawl dashboard user add"),
            serve_in_thread("redis://127.0.0.1:1/0", host="0.0.0.0", users=users),
        ):
            pass


def test_users_without_an_admin_are_refused(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json", disk=Disk())
    users.put("vera", role=Role.view, password="long enough password")
    with (
        pytest.raises(UsageError, match="has no admin"),
        serve_in_thread("redis://127.0.0.1:1/0", users=users.path),
    ):
        pass


def test_a_port_that_is_taken_is_told(running: Running) -> None:
    port = int(running.url.rpartition(":")[2])
    settings = Settings(redis=RedisSettings(url="redis://127.0.0.1:1/0"), port=port)
    with pytest.raises(UsageError, match="--port"), serving_in_thread(settings, disk=Disk()):
        pass
