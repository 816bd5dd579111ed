"""The report: medians of the rounds, as JSON and as a table."""

from __future__ import annotations

import os
import platform
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rounds import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.rounds import Round

_MIB = 1024 * 1024


def machine() -> dict[str, Any]:
    """Say what the figures were taken on."""
    return {
        "cpu": _processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_1_min": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def summary(turns: Sequence[Round]) -> dict[str, Any]:
    """Return the medians over *turns*, and every turn."""
    each = [as_json(turn) for turn in turns]
    return {
        "pages": turns[0].pages,
        "pages_per_cpu_s": statistics.median(turn["pages_per_cpu_s"] for turn in each),
        "pages_per_s": statistics.median(turn["pages_per_s"] for turn in each),
        "peak_rss_bytes": statistics.median(turn.cost.peak_rss_bytes for turn in turns),
        "start_up_cpu_s": statistics.median(turn.start_up.cpu_s for turn in turns),
        "connections": statistics.median(turn.connections for turn in turns),
        "archive_bytes_per_page": statistics.median(turn.archive_bytes / turn.pages for turn in turns),
        "rounds": each,
    }


def table(report: Mapping[str, Any]) -> str:
    """Return *report* as a table for people."""
    heads = (
        "crawler",
        "pages",
        "pages/CPU s",
        "pages/s",
        "peak MiB",
        "start-up CPU s",
        "archive B/page",
        "connections",
    )
    rows = [
        (
            name,
            f"{figures['pages']:,}",
            f"{figures['pages_per_cpu_s']:,.0f}",
            f"{figures['pages_per_s']:,.0f}",
            f"{figures['peak_rss_bytes'] / _MIB:,.0f}",
            f"{figures['start_up_cpu_s']:.2f}",
            f"{figures['archive_bytes_per_page']:,.0f}",
            f"{figures['connections']:,.0f}",
        )
        for name, figures in report["crawlers"].items()
    ]
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join([*lines, "", *_remarks(report)])


def _clock(report: Mapping[str, Any], name: str) -> float:
    rate: float = report["crawlers"][name]["pages_per_s"]
    return rate


def _remarks(report: Mapping[str, Any]) -> list[str]:
    server, page = report["server"], report["page"]
    pages = f"pages of {page['bytes']:,.0f} bytes, gzip ratio {page['gzip_ratio']:.2f}"
    remarks = [
        f"Medians of {report['rounds']} rounds; {pages}, over {report['hosts']} hosts.",
        "CPU is user and system time of the crawler's processes, start-up included.",
    ]
    if server["pages"]:
        remarks.append(
            f"The server took {server['cpu_s'] / server['pages'] * 1e6:.0f} us of CPU a page."
        )
    rates = {name: figures["pages_per_cpu_s"] for name, figures in report["crawlers"].items()}
    ours = rates.pop("amicrawl", None)
    if ours is not None:
        remarks += [
            f"amicrawl archives {ours / rate:.2f} x the pages of {name} per CPU second, "
            f"{_clock(report, 'amicrawl') / _clock(report, name):.2f} x by the clock."
            for name, rate in rates.items()
        ]
    remarks += [f"{name}: {version}" for name, version in report["versions"].items()]
    remarks += [f"{name} was not measured: {reason}" for name, reason in report["not_measured"].items()]
    remarks += [f"Void: {reason}" for reason in report["void"]]
    return remarks
