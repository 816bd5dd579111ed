"""The frontier's benchmark runs to its end and says what it promises; the numbers are not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amicrawl.config import Identity
from amicrawl.urls import url_key
from benchmarks import large_frontier, scale_chart
from benchmarks.frontier_steps import STEPS
from benchmarks.weblist import WebList

PROJECT = Path(__file__).parents[2]
FILE = {
    "encode_cpu_s",
    "encode_wall_s",
    "encode_per_cpu_s",
    "encode_per_wall_s",
    "decode_cpu_s",
    "decode_wall_s",
    "decode_per_cpu_s",
    "decode_per_wall_s",
    "bytes_per_url",
    "filter_bytes_per_url",
    "arena_bytes_per_url",
    "inspect_ms",
    "inspect_reads",
}


def rates(name: str) -> set[str]:
    return {f"{name}_{unit}" for unit in ("cpu_s", "wall_s", "per_cpu_s", "per_wall_s")}


def memory(name: str) -> set[str]:
    return {f"{name}_{kind}_bytes_per_url" for kind in ("rss", "anon", "file")}


FIGURES = {
    "seeded, zstd": FILE,
    "seeded, none": FILE,
    "crawled, zstd": FILE,
    "crawled, none": FILE,
    "offer": rates("offer") | memory("offered"),
    "killed": memory("replayed")
    | {"reopen_killed_cpu_s", "reopen_killed_wall_s", "close_cpu_s", "close_wall_s"},
    "reopen": memory("reopened") | {"reopen_cpu_s", "reopen_wall_s"},
    "known": rates("known"),
    "fetch": rates("fetch"),
    "snapshot": {
        "snapshot_wall_s",
        "snapshot_begin_ms",
        *(f"{when}_pause_{what}_ms" for when in ("snapshot", "calm") for what in ("max", "p999")),
        "snapshot_turns",
        "calm_turns",
    },
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("benchmark") / "frontier.json"
    command = [sys.executable, "-m", "benchmarks.frontier", "--rows", "2000", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--json", str(path)], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    assert "2,000 URLs" in done.stdout
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_every_step_gives_all_its_figures(report: dict[str, Any]) -> None:
    assert list(report["figures"]) == list(STEPS) == list(FIGURES)
    assert {step: set(figures) for step, figures in report["figures"].items()} == FIGURES
    assert {step: len(turns) for step, turns in report["turns"].items()} == dict.fromkeys(STEPS, 1)


def test_it_says_what_it_was_measured_on(report: dict[str, Any]) -> None:
    assert report["machine"]["cpus"] >= 1
    assert (report["rows"], report["rounds"], report["hosts"]) == (2000, 1, 33)


def test_a_list_is_the_same_each_time_and_its_urls_all_differ(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        WebList(tmp_path / name, 5000).write()
    first, second = WebList(tmp_path / "first", 5000), WebList(tmp_path / "second", 5000)
    given = [pair for batch in first.batches() for pair in batch]
    assert given == [pair for batch in second.batches() for pair in batch]
    assert all(url_key(url, Identity.EXACT) == key for url, key in given)
    assert [url.encode() for url, _ in given] == list(first.texts())
    assert len(set(given)) == len(np.unique(first.keys(), axis=0)) == 5000
    assert 1 < len({key.host for _, key in given}) <= first.hosts


@pytest.mark.slow
def test_a_large_frontier_is_killed_and_opened_again_and_drawn(tmp_path: Path) -> None:
    figures = large_frontier.measure(4_000, tmp_path / "small") + large_frontier.measure(
        8_000, tmp_path / "large"
    )
    assert [each["step"] for each in figures] == [*large_frontier.STEPS] * 2
    assert all(each["urls"] < each["disk_bytes"] <= each["disk_peak_bytes"] for each in figures)
    assert all(0 < each["resident_bytes"] <= each["peak_bytes"] for each in figures)
    assert "bytes a URL" in large_frontier.line_of(figures[0])
    assert scale_chart.chart(figures).count("<polyline") == 2 * len(large_frontier.STEPS)
