"""A stand-in for a crawl: renews its lease, and behaves as the note of its job says. Quick to start."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import redis

LEASE = int(float(os.environ["AMICRAWL_JOB_LEASE"]) * 1000)
RENEW = (Path(__file__).parents[2] / "amicrawl/fleet/database/scripts/renew.lua").read_text()


class StoppedError(Exception):
    """The pipeline wants an end."""


def stop(*_: object) -> None:
    raise StoppedError


def main(ident: str, directory: Path) -> int:
    signal.signal(signal.SIGINT, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    client: Any = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    token = os.environ["AMICRAWL_JOB_TOKEN"]
    keys = [f"amicrawl:claim:{ident}", f"amicrawl:lease:{ident}", ident]
    behaviour = client.hget(ident, "note")
    print(f"crawling {ident}", flush=True)
    done = directory / "done"
    pages = len(done.read_text().splitlines()) if done.exists() else 0
    try:
        while True:
            try:
                response = client.eval(RENEW, 3, *keys, token, LEASE, 1, 1)
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(0.2)
                continue
            if response == "LOST":
                return 6
            pages += 1
            with done.open("a") as file:
                file.write(f"{pages} {token}\n")
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
                client.hset(ident, "items_downloaded", pages)
            if behaviour == "crash" and pages % 3 == 0:
                print("it fell over", file=sys.stderr, flush=True)
                return 1
            if behaviour == "stubborn":
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            if behaviour == "no room" and pages == 3:
                return 4
            if behaviour == "hang" and pages == 3:
                os.kill(os.getpid(), signal.SIGSTOP)
            if behaviour == "noise":
                print("\n".join(f"line {n}" for n in range(5000)), flush=True)
            if pages >= (1000 if behaviour in {"long", "stubborn"} else 6):
                return 8 if behaviour == "limit" else 0
            time.sleep(0.15)
    except StoppedError:
        return 6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
