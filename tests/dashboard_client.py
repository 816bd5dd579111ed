"""A client of a dashboard, as a browser's page of its own or as a program would."""

from __future__ import annotations

import json
import time
import weakref
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60.0
"""How long something may take to come about, in seconds."""
IDENT = "1q2qydhkeh3gfnrcxuf6py70b"
OTHER = "43z7a11vo6of3a7i173441dtc"


class DashboardClient:
    """A client of one dashboard that knows the token against forged requests."""

    def __init__(self, url: str, **keywords: Any) -> None:
        self.client = httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False, **keywords)
        # A test that fails keeps it until the end, and has its own report to make.
        weakref.finalize(self, self.client.close)
        self.csrf = self.client.get("/api/v1/session").json().get("csrf", "")

    def get(self, path: str, **headers: str) -> httpx.Response:
        """GET *path* of the API."""
        return self.client.get(
            f"/api/v1{path}", headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """POST *body* to *path* of the API."""
        sent = {"x-csrf-token": self.csrf, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.client.post(f"/api/v1{path}", json={} if body is None else body, headers=sent)

    def page(self, path: str, **headers: str) -> httpx.Response:
        """GET the page *path* as a browser does."""
        return self.client.get(path, headers={"accept": "text/html", **headers})

    def submit(self, url: str = "http://example.org/", **said: Any) -> str:
        """Submit a job and return its ident."""
        response = self.post("/jobs", {"url": url, **said})
        assert response.status_code == 201, response.text
        return str(response.json()["ident"])

    def events(self, query: str = "", **headers: str) -> Iterator[tuple[str, Any, str]]:
        """Yield the events of the stream: name, what it says, id."""
        sent = {k.replace("_", "-"): v for k, v in headers.items()}
        with self.client.stream("GET", f"/api/v1/events?{query}", headers=sent) as response:
            assert response.status_code == 200, response.read()
            name, said, number = "", None, ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    said = json.loads(value)
                elif field == "id":
                    number = value
                elif not line and name:
                    yield name, said, number
                    name, said = "", None


def until(is_so: Callable[[], bool]) -> None:
    """Wait until *is_so*."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "that did not come about"
        time.sleep(0.05)


def download(number: int, url: str = "http://example.org/", code: int = 200) -> str:
    """Return a log entry as a crawl writes it."""
    return json.dumps(
        {
            "ts": 1_700_000_000 + number / 1000,
            "url": f"{url}{number}",
            "response_code": code,
            "wget_code": "OK",
            "is_error": code >= 500,
            "is_warning": 400 <= code < 500,
            "type": "download",
        }
    )


def run_job(client: Any, ident: str, **fields: Any) -> None:
    """Put a job that runs into Redis, as a pipeline of ArchiveBot would."""
    record = {
        "url": f"http://{ident}.example/",
        "fetch_depth": "inf",
        "log_key": f"{ident}_log",
        "started_at": "1700000000.5",
        "concurrency": "3",
        "delay_min": "250",
        "delay_max": "375",
        "log_score": "0",
        **{name: str(value) for name, value in fields.items()},
    }
    client.hset(ident, mapping=record)
    client.rpush("working", ident)


def add_lines(client: Any, ident: str, *entries: str, channel: str = "updates") -> None:
    """Add log entries to a job as the log script does."""
    for entry in entries:
        score = client.hincrby(ident, "log_score", 1)
        client.zadd(f"{ident}_log", {entry: score})
    client.publish(channel, ident)
