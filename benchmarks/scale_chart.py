"""Draw what frontiers of several sizes take: octets of memory and of disk for each URL, by step.

python -m benchmarks.scale_chart docs/screenshots/large-frontier.svg OUT/*/figures.jsonl
"""

from __future__ import annotations

import json
import sys
from math import log10
from pathlib import Path
from typing import Any

from benchmarks.large_frontier import STEPS

WIDTH, HEIGHT, LEFT, TOP = 460, 150, 150, 20
PANELS = (("peak_bytes", "memory at most"), ("disk_peak_bytes", "disk at most"))
COLOURS = dict(zip(STEPS, ("#0b7a75", "#b5651d", "#5b4b8a", "#a03050", "#4a7a2a"), strict=True))


def chart(figures: list[dict[str, Any]]) -> str:
    """Return an SVG with a panel for memory and one for disk, and a line for each step."""
    sizes = sorted({each["urls"] for each in figures})
    first, last = log10(sizes[0]), log10(sizes[-1])
    parts = []

    def across(urls: int) -> float:
        return LEFT + WIDTH * (log10(urls) - first) / ((last - first) or 1)

    for place, (name, title) in enumerate(PANELS):
        base = TOP + place * (HEIGHT + 40) + HEIGHT
        top = max(each[name] / each["urls"] for each in figures)
        parts += [
            f'<text x="0" y="{base - HEIGHT + 14}">{title}</text>',
            f'<text x="0" y="{base - HEIGHT + 32}" class="small">bytes a URL, up to {top:,.0f}</text>',
            f'<line x1="{LEFT}" y1="{base}" x2="{LEFT + WIDTH}" y2="{base}" stroke="#999"/>',
        ]
        for step, colour in COLOURS.items():
            of_step = sorted((each for each in figures if each["step"] == step), key=_urls)
            points = " ".join(
                f"{across(each['urls']):.1f},{base - HEIGHT * each[name] / each['urls'] / top:.1f}"
                for each in of_step
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            )
    foot = TOP + len(PANELS) * (HEIGHT + 40)
    parts += [
        f'<text x="{across(urls) - 12:.0f}" y="{foot - 20}" class="small">{urls / 1e6:g} million</text>'
        for urls in sizes
    ]
    parts += [
        f'<text x="{LEFT + 90 * place}" y="{foot + 4}" class="small" style="fill:{colour}">{step}</text>'
        for place, (step, colour) in enumerate(COLOURS.items())
    ]
    style = "text{font:14px sans-serif;fill:#555}.small{font-size:12px}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 70} {foot + 16}">'
        f"<style>{style}</style>{''.join(parts)}</svg>\n"
    )


def _urls(figures: dict[str, Any]) -> int:
    urls: int = figures["urls"]
    return urls


if __name__ == "__main__":
    lines = [line for path in sys.argv[2:] for line in Path(path).read_text().splitlines()]
    Path(sys.argv[1]).write_text(chart([json.loads(line) for line in lines]))
