"""The campaign of jobs: a fault at a step of the life of a job, a bucket of some kind, and the account.

A run has two machines, which share Redis and a bucket only, and a site of some pages. When the job comes
to the step, the machine that has it suffers the fault; the other one is there to continue. In the end
the job has completed, and bucket, index, record, figures and log say the same as the WARC files, or the
run says why not.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.parquet as pq
import warm_processes
from crawl_processes import started_by
from faulty_store import Cable, FaultyStore
from loopback import PROJECT, QUICK, RawServer, environment, page
from object_store import CREDENTIALS
from redis_server import end, started_server
from warcio.archiveiterator import ArchiveIterator

from amicrawl.fleet.database.connection import connect
from amicrawl.fleet.database.ident import ident_of, normalised

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from redis_server import RedisServer

PAGES = 24
AT_ONCE = 2
LEASE = int(os.environ.get("AMICRAWL_CAMPAIGN_LEASE", "4"))
"""Seconds. On a machine with much else to do, a crawl that waits for its turn is none that hangs."""
PATIENCE = 37.5 * LEASE
"""Seconds that a job gets to end."""

STEPS = {
    "start: publish": ("PUT", "uploaded.json", 1),
    "start: first page": ("page", "", 1),
    "crawl: a third": ("page", "", PAGES // 3),
    "crawl: a file": ("PUT", ".warc.gz", 1),
    "checkpoint: part": ("PUT", ".checkpoint-0/part", 1),
    "checkpoint: list": ("PUT", ".checkpoint-0/checkpoint.json", 1),
    "checkpoint: second": ("PUT", ".checkpoint-1/", 2),
    "end: last page": ("page", "", PAGES),
    "end: index": ("PUT", "captures.parquet", 1),
    "end: account": ("PUT", "crawl.json", 1),
    "end: account is there": ("after PUT", "crawl.json", 1),
    "end: listed": ("after PUT crawl.json, PUT", "uploaded.json", 1),
    "end: reported": ("step", "reported", 1),
    "takeover: look": ("takeover GET", "crawl.json", 1),
    "takeover: fetch": ("takeover GET", ".checkpoint-", 2),
    "takeover: page": ("takeover page", "", 2),
    "takeover: end": ("takeover PUT", "crawl.json", 1),
}
"""What is seen when a job comes to each step: a request to bucket or site, or a word in its record."""
FAULTS = (
    "machine dies",
    "pipeline dies",
    "crawl dies",
    "signal",
    "two signals",
    "freezes",
    "loses redis shortly",
    "loses redis",
    "loses the bucket",
)
MOODS: dict[str, dict[str, float]] = {
    "good": {},
    "slow": {"delay": 0.15},
    "failing": {"fails": 1.5},
    "eventual": {"lag": 1.0},
}


@dataclass(frozen=True)
class Case:
    """What happens in one run."""

    step: str
    fault: str
    mood: str

    def __str__(self) -> str:
        return f"{self.step}; {self.fault}; bucket {self.mood}"


def cases(number: int, seed: int = 0, *, among: str = "") -> list[Case]:
    """Return *number* cases: each step with each fault first, moods in turn.

    *among* is an expression that "step; fault" has to match.
    """
    chance = random.Random(seed)
    found: list[Case] = []
    while len(found) < number:
        round_ = [
            (step, fault) for step in STEPS for fault in FAULTS if re.search(among, f"{step}; {fault}")
        ]
        chance.shuffle(round_)
        moods = list(MOODS) * (len(round_) // len(MOODS) + 1)
        chance.shuffle(moods)
        found += [Case(*pair, mood) for pair, mood in zip(round_, moods, strict=False)]
    return found[:number]


class Machine:
    """A pipeline with a data directory of its own, and its crawls."""

    def __init__(self, run: CampaignRun, name: str) -> None:
        self._cable = Cable(int(run.server.url.rsplit(":", 1)[1].split("/")[0]))
        self.data, self.log = run.directory / name, run.directory / f"{name}.log"
        self._cable.__enter__()
        line = [sys.executable, "-m", "amicrawl", "pipeline", "--slots", "1", "--name", name]
        line += ["--data", str(self.data), "--redis", f"redis://127.0.0.1:{self._cable.port}/0"]
        line += ["--prefix", run.prefix, "--lease", str(LEASE), "--min-free", "0"]
        line += ["--bucket", run.store.url("jobs"), "--checkpoint-every", "1"]
        settings = {**QUICK, "AMICRAWL_PER_HOST": str(AT_ONCE), "AMICRAWL_WARC_SIZE": "20000"}
        for setting, value in settings.items():
            line += ["-s", f"{setting}={value}"]
        with self.log.open("ab") as output:
            self.process: subprocess.Popen[bytes] = warm_processes.Popen(
                line, cwd=PROJECT, env={**environment(), **CREDENTIALS}, stdout=output, stderr=output
            )

    @property
    def crawls(self) -> list[Any]:
        return started_by(self.process.pid)

    def signal(self, number: int) -> None:
        """Send signal *number* to the pipeline and its crawls."""
        for process in [*self.crawls, self.process]:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process.send_signal(number)

    def suffer(self, fault: str, run: CampaignRun) -> None:
        """Have *fault* happen here."""
        if fault == "machine dies":
            self.signal(signal.SIGKILL)
        elif fault == "pipeline dies":
            self.process.kill()
        elif fault == "crawl dies":
            for process in self.crawls:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        elif fault in {"signal", "two signals"}:
            self.process.terminate()
            if fault == "two signals":
                run.later(0.5, self.process.terminate)
        elif fault == "freezes":
            self.signal(signal.SIGSTOP)
            run.later(LEASE * 2.5, lambda: self.signal(signal.SIGCONT))
        elif fault == "loses the bucket":
            run.store.is_cut = True
            run.later(6.0, lambda: setattr(run.store, "is_cut", False))
        else:
            self._cable.cut()
            run.later(2.0 if "shortly" in fault else LEASE * 2.5, self._cable.join)

    def end(self) -> None:
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.process.wait(30)
        self._cable.__exit__()


class CampaignRun:
    """One case, from the submission of its job to its account."""

    def __init__(self, case: Case, server: RedisServer, directory: Path, number: int) -> None:
        self.case, self.server, self.directory = case, server, directory
        self.prefix = f"run{number}:"
        self.store = FaultyStore(**MOODS[case.mood])
        self.redis: Any = connect({"REDIS_URL": server.url, "AMICRAWL_REDIS_PREFIX": self.prefix})
        self._seen: Counter[tuple[str, str]] = Counter()
        self._happened = threading.Event()
        self._is_over = threading.Event()
        self._machines: list[Machine] = []
        self._lock = threading.Lock()
        self._pages = 0
        self._waits_until = 0.0

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do *act* in *seconds*."""
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()

    def run(self) -> list[str]:
        """Return what is wrong at the end; empty where nothing is."""
        self.directory.mkdir(parents=True)
        with self.store, RawServer(self._respond) as web:
            self.url = f"http://127.0.0.1:{web.port}/"
            self.store.before = self._noticed
            self.store.after = lambda method, key: self._noticed(f"after {method}", key)
            ident = self._submit()
            try:
                self._machines.append(Machine(self, "first-one"))
                if self.case.step.startswith("takeover"):
                    self._wait(lambda: self._pages > PAGES // 2, 60)
                    claim = self.redis.keys.claim(ident)
                    self._wait(lambda: self._client.hget(claim, "checkpoint"), 30)
                    self._machines[0].signal(signal.SIGKILL)
                    self._machines.append(Machine(self, "second-one"))
                watch = threading.Thread(target=self._watch, args=(ident,), daemon=True)
                watch.start()

                def ended() -> bool:
                    return bool(self._client.hget(self._key(ident), "finished_at"))

                is_over = self._wait(lambda: self._happened.is_set() or ended(), PATIENCE)
                if self._happened.is_set():
                    self._machines.append(Machine(self, "next-one"))
                    is_over = self._wait(ended, PATIENCE)
                self._is_over.set()
                faults = [] if is_over else [f"it has not ended: {self._claim(ident)}"]
                return faults or Account(self, ident).faults()
            finally:
                self._is_over.set()
                for machine in self._machines:
                    machine.end()
                self.redis.close()

    @property
    def happened(self) -> bool:
        """Whether the job came to the step, so that the fault happened."""
        return self._happened.is_set()

    @property
    def _client(self) -> Any:
        return self.redis.client

    def _key(self, ident: str) -> str:
        return str(self.redis.keys.job(ident))

    def _claim(self, ident: str) -> str:
        claim = self._client.hgetall(self.redis.keys.claim(ident))
        record = self._client.hgetall(self._key(ident))
        return f"claim {claim}, record {record}"

    def _submit(self) -> str:
        url = normalised(self.url)
        ident, client, keys = ident_of(url), self._client, self.redis.keys
        fields = {"url": url, "fetch_depth": "inf", "log_key": keys.log(ident), "slug": "site-inf"}
        fields |= {"ignore_patterns_set_key": keys.ignores(ident), "settings_age": "1"}
        fields |= {"delay_min": "0", "delay_max": "0", "concurrency": str(AT_ONCE)}
        fields |= {"queued_at": "1700000000", "started_by": "nick", "started_in": "#chan"}
        client.hset(keys.job(ident), mapping=fields)
        client.sadd(keys.ignores(ident), "^never$")
        client.lpush(keys.queue("pending"), ident)
        return ident

    def _respond(self, head: bytes) -> bytes:
        number = int(head.split(b" ")[1][1:] or 0)
        with self._lock:
            self._pages += 1
        self._noticed("page", "")
        # Another machine has to find a crawl to continue, and checkpoints are far apart on a busy one.
        time.sleep(0.5 if self.case.step.startswith(("checkpoint", "takeover")) else 0.15)
        if self.case.step == "checkpoint: second" and self._pages > PAGES // 2:
            # Where one takes long, the next is far off: the job has to end all the same.
            self._waits_until = self._waits_until or time.monotonic() + PATIENCE / 3
            self._happened.wait(min(20, max(0, self._waits_until - time.monotonic())))
        return page(body_of(number), "Content-Type: text/html")

    def _count(self, method: str, name: str) -> int:
        with self._lock:
            return sum(
                count for (seen, key), count in self._seen.items() if seen == method and name in key
            )

    def _noticed(self, what: str, key: str) -> None:
        """Note a request; if it is what the case waits for, have its fault happen meanwhile."""
        with self._lock:
            if key and not key.endswith(("/", ".open")):
                key = key.removesuffix(".open")
            self._seen[what, key.removesuffix(".open")] += 1
        wanted, name, number = STEPS[self.case.step]
        begins = 1
        if wanted.startswith("takeover "):
            begins, wanted = 2, wanted.removeprefix("takeover ")
        if ", " in wanted:
            earlier, wanted = wanted.split(", ")
            method, _, file = earlier.rpartition(" ")
            if not self._count(method, f"/{file}"):
                return
        if what != wanted or name not in key or len(self._machines) < begins:
            return
        if begins == 1 and self._count(what, name) < number:
            return
        if begins == 2:
            with self._lock:
                self._seen["takeover", what] += 1
                if self._seen["takeover", what] < number:
                    return
        self._happen()

    def _watch(self, ident: str) -> None:
        """Look for a step that the record shows."""
        wanted, name, _ = STEPS[self.case.step]
        while wanted == "step" and not self._is_over.is_set() and not self.happened:
            if self._client.hget(self._key(ident), "amicrawl_step") == name:
                self._happen()
            time.sleep(0.003)

    def _happen(self) -> None:
        with self._lock:
            if self.happened:
                return
            self._happened.set()
        self._machines[-1].suffer(self.case.fault, self)

    def _wait(self, condition: Callable[[], object], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return True
            time.sleep(0.05)
        return False


def body_of(number: int) -> bytes:
    """Return page *number* of the site, which leads to two others; no compression makes it small."""
    children = [child for child in (2 * number + 1, 2 * number + 2) if child < PAGES]
    links = "".join(f'<a href="/{child}">x</a>' for child in children)
    noise = "".join(hashlib.sha256(f"{number} {n}".encode()).hexdigest() for n in range(120))
    return f"<html><body>{links}<p>{noise}</p></body></html>".encode()


class Account:
    """What bucket, index, record and log say of a job that has ended, compared with its WARC files."""

    def __init__(self, run: CampaignRun, ident: str) -> None:
        self._run, self._ident = run, ident
        found = run.store.objects()
        self._client: Any = run.redis.client
        self._record: dict[str, str] = self._client.hgetall(run.redis.keys.job(ident))
        claim: dict[str, str] = self._client.hgetall(run.redis.keys.claim(ident))
        start = f"jobs/{claim.get('directory', '?')}/"
        self._files = {k.removeprefix(start): v for k, v in found.items() if k.startswith(start)}

    def faults(self) -> list[str]:
        """Return all that does not agree."""
        record, faults = self._record, []
        if record.get("aborted") or record.get("failed"):
            faults.append(f"it was not completed: {record}")
        missing = {"captures.parquet", "crawl.json", "uploaded.json"} - self._files.keys()
        if missing:
            return [*faults, f"the bucket lacks {sorted(missing)}: {sorted(self._files)}"]
        crawl = json.loads(self._files["crawl.json"])
        if (crawl["state"], crawl["finish_reason"]) != ("finished", "finished"):
            faults.append(f"crawl.json says {crawl['state']}, {crawl['finish_reason']}")
        listed = {file["name"]: file for file in json.loads(self._files["uploaded.json"])["files"]}
        for file in [*crawl["files"], *listed.values()]:
            content = self._files.get(file["name"], b"")
            if hashlib.sha256(content).hexdigest() != file["sha256"]:
                faults.append(f"{file['name']} in the bucket is not what a list says")
        names = {"captures.parquet", "crawl.json", *(file["name"] for file in crawl["files"])}
        faults += [f"{name} is not in uploaded.json" for name in sorted(names - listed.keys())]
        return faults + self._of_rows()

    def _of_rows(self) -> list[str]:
        faults = []
        rows = pq.read_table(io.BytesIO(self._files["captures.parquet"])).to_pylist()
        urls = Counter(row["url"] for row in rows)
        wanted = {f"{self._run.url}{number or ''}" for number in range(PAGES)}
        if urls.keys() != wanted:
            faults.append(f"the index lacks {sorted(wanted - urls.keys())}, has {urls.keys() - wanted}")
        for row in rows:
            content = self._files.get(row["warc_file"], b"")
            at = row["warc_offset"]
            if url_at(content[at : at + row["warc_length"]]) != row["url"]:
                faults.append(f"{row['warc_file']} has no record of {row['url']} at {at}")
        counted = {
            "items_downloaded": len(rows),
            "items_queued": len(rows),
            "r2xx": sum(200 <= row["status"] < 300 for row in rows),
            "runk": sum(not row["status"] for row in rows),
            "bytes_downloaded": sum(row["body_length"] for row in rows),
        }
        for name, value in counted.items():
            if int(self._record.get(name, -1)) != value:
                faults.append(f"{name} is {self._record.get(name)}, and the index has {value}")
        key = self._run.redis.keys.log(self._ident)
        entries = [json.loads(text) for text in self._client.zrange(key, 0, -1)]
        logged = Counter(entry["url"] for entry in entries if entry["type"] == "download")
        if urls - logged:
            faults.append(f"the log lacks {dict(urls - logged)}")
        said = "".join(entry.get("message", "") for entry in entries)
        if not said.rstrip().endswith("has completed"):
            faults.append(f"the log ends with {said[-200:]!r}")
        return faults


def url_at(member: bytes) -> str:
    """Return the URL of the record in *member*; empty where it is none."""
    with contextlib.suppress(Exception):
        for record in ArchiveIterator(io.BytesIO(member)):
            return str(record.rec_headers.get_header("WARC-Target-URI"))
    return ""


def main(number: int, seed: int, workers: int, out: Path, among: str = "") -> int:
    """Run *number* cases *among* the steps, *workers* at a time; return how many are not whole."""
    os.environ.update(CREDENTIALS)
    server, wrong, chosen = started_server(), 0, cases(number, seed, among=among)
    reached: Counter[bool] = Counter()

    def one(numbered: tuple[int, Case]) -> tuple[int, Case, list[str], bool, float]:
        n, case = numbered
        began = time.monotonic()
        run = CampaignRun(case, server, out / f"run-{n}", n)
        try:
            faults = run.run()
        except Exception as error:  # noqa: BLE001
            faults = [f"the run itself failed: {error!r}"]
        return n, case, faults, run.happened, time.monotonic() - began

    try:
        with ThreadPoolExecutor(workers) as pool:
            for n, case, faults, happened, seconds in pool.map(one, enumerate(chosen)):
                reached[happened] += 1
                wrong += bool(faults)
                what = "; ".join(faults)[:1500] or "whole"
                print(
                    f"{n:4d} {seconds:5.1f} s {'' if happened else '(not reached) '}{case}: {what}",
                    flush=True,
                )
    finally:
        end(server)
    print(f"{number} runs, {reached[True]} with the fault at its step, {wrong} not whole")
    return wrong


if __name__ == "__main__":
    how_many, drawn, at_once = map(int, sys.argv[1:4])
    sys.exit(min(main(how_many, drawn, at_once, Path(sys.argv[4]), *sys.argv[5:]), 1))
