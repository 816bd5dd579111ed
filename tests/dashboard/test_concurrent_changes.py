"""Limits hold however many requests come at once, also at several dashboards."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest
from dashboard_serving import serve_in_thread

from amicrawl.disk import Disk
from amicrawl.errors import UsageError
from amicrawl.fleet.dashboard.users import Role, Users
from amicrawl.fleet.database.connection import RedisUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore


@pytest.fixture
def users(tmp_path: Path) -> Users:
    made = Users(tmp_path / "users.json", disk=Disk())
    for name, role in (("otto", Role.operate), ("anna", Role.admin), ("adam", Role.admin)):
        made.put(name, role=role, password=None)
    return made


def test_a_user_has_no_more_jobs_than_allowed_however_many_are_submitted_at_once(
    redis_server: RedisServer, users: Users
) -> None:
    token = users.add_token("otto")
    with (
        serve_in_thread(redis_server.url, users=users.path, jobs_per_user=3) as one,
        serve_in_thread(redis_server.url, users=users.path, jobs_per_user=3) as two,
        httpx.Client(trust_env=False, timeout=60) as client,
        ThreadPoolExecutor(24) as pool,
    ):
        client.headers["authorization"] = f"Bearer {token}"

        def submit(number: int) -> int:
            address = (one, two)[number % 2].url
            body = {"url": f"http://site-{number}.example/"}
            return client.post(f"{address}/api/v1/jobs", json=body).status_code

        codes = Counter(pool.map(submit, range(24)))
    assert codes == {201: 3, 409: 21}


def test_of_two_admins_that_remove_each_other_at_once_one_stays(
    redis_server: RedisServer, users: Users
) -> None:
    tokens = {name: users.add_token(name) for name in ("anna", "adam")}
    text = users.path.read_bytes()
    with (
        serve_in_thread(redis_server.url, users=users.path) as one,
        serve_in_thread(redis_server.url, users=users.path) as two,
        httpx.Client(trust_env=False, timeout=60) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        for attempt in range(30):
            users.path.write_bytes(text)
            ready = threading.Barrier(2)

            def remove(
                name: str, other: str, address: str, is_removed: bool, at: threading.Barrier
            ) -> int:
                header = {"authorization": f"Bearer {tokens[name]}"}
                assert client.get(f"{address}/api/v1/users", headers=header).status_code == 200
                path, body = f"/users/{other}/remove", {}
                if not is_removed:
                    path, body = "/users", {"name": other, "role": "view"}
                at.wait()
                return client.post(f"{address}/api/v1{path}", json=body, headers=header).status_code

            codes = sorted(
                pool.map(
                    remove,
                    *(("anna", "adam"), ("adam", "anna"), (one.url, two.url)),
                    *((attempt % 2 == 0,) * 2, (ready,) * 2),
                )
            )
            admins = [user.name for user in users.all().values() if user.role is Role.admin]
            assert len(admins) == 1, (attempt, codes)
            assert codes[0] == 200


def test_changes_of_several_programs_at_once_are_all_kept(users: Users) -> None:
    def add(number: int) -> None:
        Users(users.path, disk=Disk()).put(f"user-{number}", role=Role.view, password=None)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert len(json.loads(users.path.read_bytes())["users"]) == 43
    users.remove("adam", keep_admin=True)
    with pytest.raises(UsageError, match="last admin"):
        users.remove("anna", keep_admin=True)


def test_a_lock_that_is_not_released_is_given_up_for_and_ends_by_itself(store: JobStore) -> None:
    key = store.keys.submitting("otto")
    with store.locked(key, seconds=0.3):
        with pytest.raises(RedisUnavailable, match="lock"), store.locked(key, seconds=0.1):
            pass
        with store.locked(key, seconds=10):
            assert store.client.exists(key)
    assert not store.client.exists(key)
