"""The example goes from a crawl of the demo site to a chart."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from analysis.from_crawl_to_chart import COLOURS, chart
from demo_site.server import DemoSite
from loopback import PROJECT, crawl, environment
from lxml import etree

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
PAGES = ("", "glossary.html", "style.css", "lamp.svg", "tides.png", "lamp-room", "lost-volume.html")


def test_the_example_goes_from_a_crawl_to_a_chart(tmp_path: Path) -> None:
    with DemoSite() as site:
        (tmp_path / "seeds.txt").write_text("".join(f"{site.url}{page}\n" for page in PAGES))
        done = crawl(tmp_path / "seeds.txt", tmp_path / "ami-out")
        assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [
            sys.executable,
            PROJECT / "examples" / "analysis" / "from_crawl_to_chart.py",
            *("--crawl", tmp_path / "ami-out", "--out", tmp_path / "analysis"),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "1 captures with status 404" in shown.stdout
    with (tmp_path / "analysis" / "types.csv").open(newline="") as lines:
        types = {row["declared"]: row for row in csv.DictReader(lines)}
    assert types["image/png"]["detected"] == "image/png"
    svg = etree.parse(tmp_path / "analysis" / "chart.svg").getroot()
    words = [each.text for each in svg.iter(f"{SVG}text")]
    assert {"text/html", "image/png", *COLOURS} <= set(words)
    report = json.loads((tmp_path / "analysis" / "collection" / "report.json").read_text())
    assert report, "the collection says what became of each file"


def test_the_chart_holds_any_words_and_no_rows_at_all() -> None:
    hostile = [{"type": "<script>\x1b\x00&" + "x" * 99, "status": "other", "captures": 3}]
    svg = etree.fromstring(chart(hostile, "a & b").encode())
    assert [each.text for each in svg.iter(f"{SVG}title")] == ["<script>??&" + "x" * 99 + ", other: 3"]
    assert not list(svg.iter(f"{SVG}script"))
    etree.fromstring(chart([], "nothing").encode())
