"""Where tests with a real Spark run: in `make test-spark`, which has Java and the extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from object_store import ObjectStore

PROJECT = Path(__file__).parents[1]

needs_spark = pytest.mark.skipif(
    "AMICRAWL_SPARK_TESTS" not in os.environ, reason="Spark's tests are run by make test-spark"
)


def over_a_cluster(command: list[str], store: ObjectStore) -> subprocess.CompletedProcess[str]:
    """Run *command* on a cluster of two; an executor is killed while tasks wait for the store."""
    given = [*command, "--engine", "spark", "--master", "local-cluster[2,1,1024]"]
    return subprocess.run(
        [sys.executable, "-c", _DRIVER, str(store.pid), *given],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


_DRIVER = """
import os, signal, sys, threading, time
from pathlib import Path
from pyspark import SparkContext

store = int(sys.argv.pop(1))

def executors():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(bytes(1))
                parents = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if any(b"CoarseGrainedExecutorBackend" in word for word in words):
                if int(parents[1]) in jvms():
                    yield int(entry.name)

def jvms():
    gateway = SparkContext._gateway
    return {gateway.proc.pid, *children(gateway.proc.pid)}

def children(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())

def watch():
    while getattr(spark := SparkContext._active_spark_context, "_jsc", None) is None:
        time.sleep(0.01)
    tracker = spark.statusTracker()
    while not tracker.getActiveStageIds():
        time.sleep(0.01)
    # Before a worker has started its Python, which takes a second, what it is to read stands still.
    os.kill(store, signal.SIGSTOP)
    try:
        while not any(
            (info := tracker.getStageInfo(stage)) and info.numActiveTasks
            for stage in tracker.getActiveStageIds()
        ):
            time.sleep(0.05)
        os.kill(next(executors()), signal.SIGKILL)
        print("killed", flush=True)
    finally:
        os.kill(store, signal.SIGCONT)

threading.Thread(target=watch, daemon=True).start()
from amicrawl.cli import main
main()
"""
