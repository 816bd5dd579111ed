"""A seed list over Spark: the captures of one machine, each host contacted by one task at a time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import warm_processes
from crawl_processes import end
from fastwarc.warc import ArchiveIterator, WarcRecordType
from loopback import PROJECT, QUICK, crawl, environment
from object_store import CREDENTIALS, ObjectStore
from spark_engine import needs_spark

from amicrawl.clock import steady_clock
from amicrawl.config import Identity
from amicrawl.crawl.processes.specification import allow
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, UsageError
from amicrawl.fleet.spark.bucket_objects import batches_name, packed, read_json, unpacked, write_json
from amicrawl.fleet.spark.leases import Address, LeaseServer, PartitionLease
from amicrawl.fleet.spark.partition import PartitionOrder, PartitionTask, batches_for
from amicrawl.fleet.spark.seed_partitions import PARTITIONED, partitioned
from amicrawl.frontier import Source
from amicrawl.partition.batch import PartitionLink, encoded_batch, encoded_link, links_in
from amicrawl.seed import BatchReader, Seed, SeedFormat, open_seed
from amicrawl.uploads.bucket import open_bucket
from amicrawl.urls import shard_of, url_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTS = 10
PAGES = 6
SLOW = {"AMICRAWL_DELAY": "0.5", "AMICRAWL_PER_HOST": "1"}
SPARK_READS = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
found = spark.read.parquet(sys.argv[1])
counts = {str(row["status"]): row["count"] for row in found.groupBy("status").count().collect()}
print(json.dumps({"columns": len(found.columns), "captures": counts}))
"""


class Web:
    """Hosts 127.0.0.1 to 127.0.0.10 on one port; knows which process has requested what."""

    def __init__(self) -> None:
        self.requested: list[tuple[float, str, str, int]] = []
        """When, which host, which path, by which process."""
        self._connections: dict[tuple[str, int], int] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server_of = outer.server_of(self.client_address[:2])
                host = str(self.headers["Host"]).partition(":")[0]
                outer.requested.append((time.monotonic(), host, self.path, server_of))
                following = int(host.rpartition(".")[2]) % HOSTS + 1
                if self.path.startswith("/moved"):
                    self.send_response(302)
                    self.send_header("Location", outer.url(following, f"target{self.path[6:]}"))
                    body = b""
                else:
                    self.send_response(200)
                    body = f"<html>{host}{self.path}</html>".encode()
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def server_of(self, address: tuple[str, int]) -> int:
        """Return the process at the other end."""
        if address not in self._connections:
            for found in psutil.net_connections("tcp4"):
                if found.laddr and found.pid:
                    self._connections.setdefault((found.laddr.ip, found.laddr.port), found.pid)
        return self._connections[address]

    def url(self, host: int, path: str) -> str:
        return f"http://127.0.0.{host}:{self.port}/{path}"

    def seeds(self) -> list[str]:
        paths = [*(f"a{number}" for number in range(PAGES)), "moved"]
        return [self.url(host, path) for path in paths for host in range(1, HOSTS + 1)]


@pytest.fixture
def web() -> Iterator[Web]:
    found = Web()
    yield found
    found.close()


def spark_command(seeds: Path, out: str, *further: str) -> list[str]:
    settings = [part for name, value in {**QUICK, **SLOW}.items() for part in ("-s", f"{name}={value}")]
    line = [sys.executable, "-m", "amicrawl", "crawl", str(seeds), "-o", out, "--engine", "spark"]
    return [*line, *settings, *further]


def spark_environment(tmp_path: Path, **conf: str) -> dict[str, str]:
    options = {f"spark.amicrawl.{name}": value for name, value in conf.items()}
    options["spark.amicrawl.scratch"] = str(tmp_path / "scratch")
    submit = " ".join(f"--conf {name}={value}" for name, value in options.items())
    return {
        **environment(),
        **CREDENTIALS,
        "PYTHONPATH": str(PROJECT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYSPARK_SUBMIT_ARGS": f"{submit} pyspark-shell",
    }


def captures_in(store: ObjectStore, run: str, directory: Path) -> list[dict[str, Any]]:
    """Return the rows of the data set at *run*, put into *directory*, having looked at its records."""
    objects = store.contents(run)
    manifest = json.loads(objects["manifest.json"])
    (directory / "captures").mkdir(parents=True)
    records = {}
    for part in manifest["parts"]:
        for file in part["files"]:
            assert len(objects[f"{part['directory']}/{file['name']}"]) == file["size"]
    for name, content in objects.items():
        if name.startswith("captures/"):
            (directory / name).write_bytes(content)
        if name.endswith(".warc.gz"):
            path = directory / name.rpartition("/")[2]
            path.write_bytes(content)
            with path.open("rb") as stream:
                for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                    url = str(record.headers["WARC-Target-URI"])
                    records[path.name, record.stream_pos] = url
    rows = pq.read_table(directory / "captures").to_pylist()
    assert manifest["rows"] == len(rows)
    kept = [row for row in rows if row["warc_file"]]
    assert all(records[row["warc_file"], row["warc_offset"]] == row["url"] for row in kept)
    assert len(kept) == len(rows) - 1
    return rows


def said(log: Path) -> str:
    """Return what *log* says, without the stacks of Spark's own."""
    return "\n".join(line for line in log.read_text().splitlines() if not line.startswith("\tat "))[
        -9000:
    ]


def facts(rows: list[dict[str, Any]]) -> Counter[tuple[str, int, str, str]]:
    return Counter((row["url"], row["status"], row["digest"], row["meta_json"]) for row in rows)


def executors_that_crawl() -> list[psutil.Process]:
    """Return the executors below which a crawl runs."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                lines = [" ".join(each.cmdline()) for each in process.children(recursive=True)]
                if any("amicrawl.crawl.start seeds" in line for line in lines):
                    found.append(process)
    return found


@needs_spark
@pytest.mark.timeout(900)  # two starts of a cluster, on a machine that may be busy
def test_with_an_executor_killed_all_is_captured_and_each_host_contacted_by_one_task(
    web: Web, tmp_path: Path
) -> None:
    seeds = tmp_path / "seeds.parquet"
    urls = [*web.seeds(), "http://[/"]
    pq.write_table(pa.table({"url": urls, "rank": list(range(len(urls)))}), seeds)
    alone = crawl(seeds, tmp_path / "alone")
    assert alone.returncode == ExitCode.DONE, alone.stderr
    expected = facts(pq.read_table(tmp_path / "alone" / "captures.parquet").to_pylist())
    web.requested.clear()
    with ObjectStore() as store, (tmp_path / "log").open("wb") as log:
        line = spark_command(seeds, store.url("run"), "--partitions", "4")
        line += ["--master", "local-cluster[3,1,1024]"]
        process = subprocess.Popen(
            line, cwd=tmp_path, stdout=log, stderr=log,
            env=spark_environment(tmp_path, lease="6", checkpoint="1"),
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 300
            # On a busy machine all crawls can be over before a single look finds them.
            while len(web.requested) < HOSTS or not (crawling := executors_that_crawl()):
                assert process.poll() is None, said(tmp_path / "log")
                assert time.monotonic() < deadline
                time.sleep(0.1)
            crawling[0].kill()
            code = process.wait(timeout=300)
            assert code == ExitCode.DONE, said(tmp_path / "log")
        finally:
            end(process)
        rows = captures_in(store, "run", tmp_path / "here")
        # Once more, with the same command: everything is done.
        before = len(web.requested)
        again = subprocess.run(
            [*line[:-1], "local[2]"], cwd=tmp_path, env=spark_environment(tmp_path), check=False,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert again.returncode == ExitCode.DONE, again.stderr[-5000:]
        assert f"{len(rows):,} rows" in again.stdout
        assert len(web.requested) == before
    assert set(facts(rows)) == set(expected)
    assert sum(facts(rows).values()) == len(rows)
    by_host = defaultdict(list)
    for _, host, _, server_of in sorted(web.requested):
        by_host[host].append(server_of)
    assert len(by_host) == HOSTS
    turns = {
        host: 1 + sum(one != other for one, other in pairwise(clients))
        for host, clients in by_host.items()
    }
    # A second round brings redirects, and the kill a second attempt; never one back to an earlier one.
    assert all(turns[host] == len(set(by_host[host])) for host in turns), turns
    assert len({server_of for clients in by_host.values() for server_of in clients}) > 4
    glob = str(tmp_path / "here" / "captures" / "*.parquet")
    relation: Any = duckdb.read_parquet(glob)
    assert relation.shape == (len(rows), len(rows[0]))
    assert len(pd.read_parquet(tmp_path / "here" / "captures")) == len(rows)
    assert not list((tmp_path / "scratch").iterdir())
    read = subprocess.run(
        [sys.executable, "-c", SPARK_READS, str(tmp_path / "here" / "captures")],
        env=spark_environment(tmp_path), check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    by_status = Counter(str(row["status"]) for row in rows)
    assert json.loads(read.stdout) == {"columns": len(rows[0]), "captures": dict(by_status)}


def test_a_partition_is_leased_to_one_attempt_at_a_time() -> None:
    now = [0.0]
    server = LeaseServer("127.0.0.1", 10, clock=lambda: now[0])
    try:
        message = {"partition": 1, "secret": server.address.secret}
        assert server.response_to({**message, "attempt": "a", "wants": "take"})["held"]
        assert not server.response_to({**message, "attempt": "b", "wants": "take"})["held"]
        assert server.response_to({**message, "partition": 2, "attempt": "b", "wants": "take"})["held"]
        now[0] = 9.0
        assert server.response_to({**message, "attempt": "a", "wants": "keep"})["held"]
        now[0] = 18.0
        assert not server.response_to({**message, "attempt": "b", "wants": "take"})["held"]
        now[0] = 19.5
        assert server.response_to({**message, "attempt": "b", "wants": "take"})["held"]
        # One that wakes up late is told, though no other attempt came meanwhile.
        assert not server.response_to({**message, "attempt": "a", "wants": "keep"})["held"]
        server.response_to({**message, "attempt": "a", "wants": "give back"})
        assert not server.response_to({**message, "attempt": "c", "wants": "take"})["held"]
        server.response_to({**message, "attempt": "b", "wants": "give back"})
        assert server.response_to({**message, "attempt": "c", "wants": "take"})["held"]
    finally:
        server.close()


def lease_of(server: Address, attempt: str, told: list[float]) -> PartitionLease:
    return PartitionLease(server, 3, attempt, ttl=1.0, renewed=told.append, facts=lambda: {"rows": 7})


def test_a_port_for_leases_that_is_in_use_or_is_none_is_said_with_its_property() -> None:
    server = LeaseServer("127.0.0.1", 10)
    try:
        for port in (server.address.port, 70_000):
            with pytest.raises(UsageError, match=rf"127\.0\.0\.1:{port}: .*spark\.amicrawl\.leasePort"):
                LeaseServer("127.0.0.1", 10, port=port)
    finally:
        server.close()


def test_a_lease_is_kept_until_it_is_given_back_and_lost_with_the_driver() -> None:
    server = LeaseServer("127.0.0.1", 1.0)
    told: list[float] = []
    first = lease_of(server.address, "a", told)
    first.take()
    waits = 0

    def wait(_: float) -> None:
        nonlocal waits
        waits += 1
        time.sleep(0.05)
        # Well beyond the time for which it was granted at first.
        if waits == 40:
            first.give_back()

    second = lease_of(server.address, "b", [])
    second.take(wait=wait)
    assert waits == 40
    assert not first.lost
    assert len(told) >= 2
    assert server.facts == {3: {"rows": 7}}
    stranger = Address(server.address.host, server.address.port, "guessed")
    refused = lease_of(stranger, "b", [])
    assert not refused._request("keep")
    server.close()
    deadline = time.monotonic() + 60
    while not second.lost and time.monotonic() < deadline:
        time.sleep(0.05)
    assert second.lost
    assert not second.is_held


def test_batches_pass_through_the_bucket_whatever_octets_they_have(tmp_path: Path) -> None:
    bucket = open_bucket(tmp_path.as_uri(), disk=Disk())
    batch = encoded_batch(
        [encoded_link(PartitionLink(Seed(f"http://a.example/{n}"), Source.SEED)) for n in range(9)]
    )
    assert not batch.isascii()
    write_json(bucket, batches_name(0), [[3, packed(batch)]])
    [[to, text]] = read_json(bucket, batches_name(0))
    assert (to, unpacked(text)) == (3, batch)
    assert read_json(bucket, batches_name(1)) is None


_ALLOWED = """
import sys, time
from amicrawl.crawl.processes.specification import Allowance
from amicrawl.clock import steady_clock
Allowance(int(sys.argv[1]), steady_clock() - 1)
print("begun", flush=True)
time.sleep(300)
"""


def test_a_partition_that_comes_to_its_limit_has_its_links_for_others_in_the_bucket(
    web: Web, tmp_path: Path
) -> None:
    """Their pages are settled: nobody would name them again, where the same command goes on."""
    for name in ("run", "run/p00000"):
        (tmp_path / "bucket" / name).mkdir(parents=True)
    url = (tmp_path / "bucket" / "run").as_uri()
    ours = 0
    hosts = [
        host
        for host in range(1, HOSTS + 1)
        if shard_of(url_key(web.url(host, ""), Identity.EXACT).host, 2) == ours
        and shard_of(url_key(web.url(host % HOSTS + 1, ""), Identity.EXACT).host, 2) != ours
    ]
    seeds = [Seed(web.url(host, f"moved{number}")) for number in range(8) for host in hosts]
    links = [encoded_link(PartitionLink(seed, Source.SEED)) for seed in seeds]
    server = LeaseServer("127.0.0.1", 30.0)
    try:
        order = PartitionOrder(
            bucket=url, partitions=2, prefix="ami", leases=server.address, lease=30.0, checkpoint=300.0,
            options=tuple(
                part for name, value in {**QUICK, **SLOW, "AMICRAWL_STOP_PAGES": "2"}.items()
                for part in ("-s", f"{name}={value}")
            ),
            environment=environment() | {"SCRAPY_SETTINGS_MODULE": "amicrawl.settings"},
            scratch=str(tmp_path / "scratch"),
        )  # fmt: skip
        reply = PartitionTask(order, ours).crawl(iter([encoded_batch(links)]), digest="x")
    finally:
        server.close()
    assert reply["code"] == ExitCode.LIMIT
    rows = pq.read_table(tmp_path / "bucket" / "run" / "captures" / "p00000.parquet").to_pylist()
    moved = {row["final_url"] for row in rows if row["status"] == HTTPStatus.FOUND}
    assert len(moved) >= 2
    mail = [("p00000", number) for number in range(len(reply["batches"]))]
    sent = [link.seed.url for batch in batches_for(order, 1, mail) for link in links_in(batch)[0]]
    assert sorted(sent) == sorted(moved)


@pytest.mark.parametrize("end_by", ["a lease that is over", "the end of its parent"])
def test_a_process_ends_with_its_lease_and_with_its_parent(end_by: str) -> None:
    theirs, ours = os.pipe()
    # What was said while it was starting counts, though what it was given to begin with is over.
    allow(ours, steady_clock() + 3600)
    with subprocess.Popen(
        [sys.executable, "-c", _ALLOWED, str(theirs)], pass_fds=[theirs], cwd=PROJECT,
        stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        os.close(theirs)
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1.5)
        if end_by == "a lease that is over":
            allow(ours, 0.0)
        else:
            os.close(ours)
        assert process.wait(timeout=60) == -signal.SIGKILL
    if end_by == "a lease that is over":
        os.close(ours)


def test_what_spark_deals_is_what_the_reader_reads_each_to_the_partition_of_its_host(
    tmp_path: Path,
) -> None:
    lines = [
        b"\xef\xbb\xbf# a comment", b"http://a.example.org/1", b"http://b.example.org/2", b"", b"no URL",
        b"http://example.com/?q=\xc3\xa4", b"http://[/",
    ]  # fmt: skip
    path = tmp_path / "seeds.txt"
    path.write_bytes(b"\n".join(lines))
    reader = BatchReader.of(str(path), lines[0], None)
    assert reader.format is SeedFormat.LINES
    batch = pa.record_batch({"line": pa.array(lines, pa.binary())})
    rows = pa.Table.from_batches(partitioned([batch], reader, partitions=16), PARTITIONED).to_pylist()
    links, _ = links_in(encoded_batch(row["link"] for row in rows if row["link"]))
    seeds = [link.seed for link in links]
    faults: list[object] = []
    with open_seed(str(path), on_fault=faults.append) as expected:
        assert seeds == list(expected)
    assert sum(row["bad"] for row in rows) == len(faults)
    parts = {seed.url: row["part"] for seed, row in zip(seeds, rows, strict=False)}
    assert parts["http://a.example.org/1"] == parts["http://b.example.org/2"]
    assert parts["http://[/"] == 0


@pytest.mark.parametrize(
    ("further", "says"),
    [
        (["--processes", "2"], "--processes does not go with --engine spark"),
        (["-s", "AMICRAWL_STOP_PAGES=3"], "AMICRAWL_STOP_PAGES does not go with --engine spark"),
        (["-a", "shard=1"], "-a shard does not go with --engine spark"),
        (["-o", "ftp://x/y"], "is not the URL of a bucket"),
    ],
)
def test_what_spark_cannot_follow_is_refused_before_it_is_started(
    further: list[str], says: str, tmp_path: Path
) -> None:
    line = [sys.executable, "-m", "amicrawl", "crawl", "seeds.txt", "-o", str(tmp_path / "out")]
    done = warm_processes.run(
        [*line, "--engine", "spark", *further], cwd=tmp_path, env={**os.environ, "COLUMNS": "200"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == ExitCode.USAGE
    assert says in done.stderr
