"""Draw the samples of a long crawl: memory, open files and tasks over time.

python -m benchmarks.samples_chart OUT/twenty-minutes/pauses.json docs/screenshots/long-crawl.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP = 640, 90, 150, 20
SERIES = (("memory, MiB", "#0b7a75"), ("open files", "#b5651d"), ("tasks", "#5b4b8a"))


def chart(samples: list[list[int]]) -> str:
    """Return an SVG with one line over another: *samples* are seconds, MiB, open files and tasks."""
    end = samples[-1][0]
    parts = []
    for place, (name, colour) in enumerate(SERIES):
        values = [sample[place + 1] for sample in samples]
        top, base = TOP + place * (HEIGHT + 30), TOP + place * (HEIGHT + 30) + HEIGHT
        points = " ".join(
            f"{LEFT + WIDTH * sample[0] / end:.1f},{base - HEIGHT * value / max(values):.1f}"
            for sample, value in zip(samples, values, strict=True)
        )
        parts += [
            f'<text x="0" y="{top + 14}">{name}</text>',
            f'<text x="0" y="{top + 32}" class="small">at most {max(values):,}</text>',
            f'<line x1="{LEFT}" y1="{base}" x2="{LEFT + WIDTH}" y2="{base}" stroke="#999"/>',
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
        ]
    height = TOP + len(SERIES) * (HEIGHT + 30) + 10
    parts += [
        f'<text x="{LEFT + WIDTH * each * 60 // end}" y="{height - 8}" class="small">{each} min</text>'
        for each in range(0, end // 60 + 1, 5)
    ]
    style = "text{font:14px sans-serif;fill:#555}.small{font-size:12px}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 40} {height}">'
        f"<style>{style}</style>{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text())["samples"]
    Path(sys.argv[2]).write_text(chart(found))
