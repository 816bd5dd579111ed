"""From a crawl to a chart, in five cells: what came, what it was found to be, and with which status.

Run it whole, `python examples/analysis/from_crawl_to_chart.py`, or cell by cell in an editor that knows
`# %%`. Without a crawl of yours (`--crawl ami-out`) it archives the demo site first. It leaves the
collection, two results and `chart.svg` in the directory `analysis`, or that of `--out`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import demo

from amicrawl.archive.table.named_queries import named_query
from amicrawl.archive.table.query import QueryTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AMICRAWL = Path(sys.executable).parent / "amicrawl"
COLOURS = {"2xx": "#3b7a57", "3xx": "#c9a227", "4xx": "#b5523b", "5xx": "#6b2d5c", "other": "#888888"}

TYPES_BY_STATUS = """
SELECT coalesce(content_mime_detected, content_mime_type, 'unknown') AS type,
       CASE WHEN fetch_status BETWEEN 200 AND 599 THEN concat(fetch_status // 100, 'xx') ELSE 'other' END
         AS status,
       count(*) AS captures
FROM ccindex
GROUP BY 1, 2
ORDER BY 1, 2
"""


# %% A crawl: yours, or one of the demo site.
def crawled(given: Path | None, out: Path) -> Path:
    """Return the directory of the crawl to look at."""
    if given is None:
        given = out / "ami-out"
        demo.main(["--out", str(given)])
    return given


# %% One pass over its WARC files: index, what the payloads are, and the table of both.
def table_of(crawl: Path, out: Path) -> Path:
    """Make the collection of *crawl* below *out* and return its table."""
    collection = out / "collection"
    subprocess.run([AMICRAWL, "collection", crawl, "-o", collection], check=True, stdout=sys.stderr)
    return collection / "table"


# %% Questions: a shipped one, written to a file, and one of our own.
def responses(table: Path, out: Path) -> list[dict[str, Any]]:
    """Query *table*, and return how many captures there are of each type and status."""
    requested = [str(AMICRAWL), "query", str(table), "compare_mime_type_http_vs_detected"]
    subprocess.run([*requested, "-o", str(out / "types.csv")], check=True)
    with QueryTable(table) as opened:
        statuses = opened.ask(named_query("count_fetch_status"), {"subset": ""})
        for row in (row for batch in statuses.batches for row in batch.to_pylist()):
            print(f"{row['captures']} captures with status {row['status']}")
    with QueryTable(table) as opened:
        return [row for batch in opened.ask_sql(TYPES_BY_STATUS).batches for row in batch.to_pylist()]


# %% The chart: a bar a type, a colour a class of status.
def chart(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return *rows* as bars, the longest first, in SVG."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        counts[str(row["type"])][str(row["status"])] = int(row["captures"])
    ranked = sorted(counts.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    longest = max((sum(parts.values()) for _, parts in ranked), default=1)
    height = 70 + 28 * len(ranked)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" font-family="sans-serif">',
        f'<rect width="720" height="{height}" fill="white"/>',
        text(16, 26, title, size=16),
    ]
    for number, (name, colour) in enumerate(COLOURS.items()):
        drawn.append(f'<rect x="{200 + 80 * number}" y="38" width="12" height="12" fill="{colour}"/>')
        drawn.append(text(217 + 80 * number, 48, name))
    for number, (kind, parts) in enumerate(ranked):
        drawn += bar(kind, parts, top=64 + 28 * number, scale=440 / longest)
    return "\n".join([*drawn, "</svg>", ""])


def bar(kind: str, parts: Mapping[str, int], *, top: int, scale: float) -> list[str]:
    """Return the bar of one media type, a part a class of status."""
    left = 200.0
    drawn = [text(190, top + 14, kind if len(kind) <= 26 else f"{kind[:25]}…", anchor="end")]
    for status, captures in sorted(parts.items()):
        place = f'x="{left:.1f}" y="{top}" width="{captures * scale:.1f}" height="20"'
        words = f"<title>{harmless(kind)}, {status}: {captures}</title>"
        drawn.append(f'<rect {place} fill="{COLOURS[status]}">{words}</rect>')
        left += captures * scale
    return [*drawn, text(left + 6, top + 14, str(sum(parts.values())))]


def text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return *words* at a place of the chart."""
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}">{harmless(words)}</text>'
    )


def harmless(words: str) -> str:
    """Return *words*, which a server may have chosen, as XML can hold them."""
    return escape("".join(each if each.isprintable() else "?" for each in words))


# %% All of it.
def main(arguments: Sequence[str]) -> None:
    """Go the whole way for the crawl that *arguments* name."""
    parser = argparse.ArgumentParser(description="From a crawl to a chart.")
    parser.add_argument("--crawl", type=Path, help="a crawl's directory (one of the demo site is made)")
    parser.add_argument("--out", type=Path, default=Path("analysis"), help="where to write (analysis)")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    table = table_of(crawled(chosen.crawl, chosen.out), chosen.out)
    rows = responses(table, chosen.out)
    (chosen.out / "chart.svg").write_text(chart(rows, "Captures by detected type and status"))
    print(f"Look at {chosen.out / 'chart.svg'}")


if __name__ == "__main__":
    main(sys.argv[1:])
