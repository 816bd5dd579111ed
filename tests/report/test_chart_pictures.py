"""Pictures of the charts, as Chromium paints them: areas of colour are as large as the figures."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from dashboard.browsing import chromium
from PIL import Image

from amicrawl.archive.report.charts import (
    Bar,
    Leaf,
    TimeColumn,
    stacked,
    stacked_timeline,
    timeline,
    treemap,
)
from amicrawl.archive.report.document import chart_styles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from playwright.sync_api import Browser

WIDTH = 600
COLOURS = {"ok": (0, 160, 0), "bad": (200, 0, 0), "bar": (0, 0, 250)}
FILLS = {".s2, .g0": "ok", ".s5, .g1": "bad", ".bar, .g2": "bar"}
STYLES = f"""{chart_styles()}
body {{ margin: 0; --ink: transparent; --quiet: transparent; --rule: transparent; --card: white; }}
.g0, .g1, .g2 {{ fill-opacity: 1; stroke: none; }}
{"".join(f"{names} {{ fill: rgb{COLOURS[name]} }}" for names, name in FILLS.items())}"""
CLASSES = {"ok": "s2", "bad": "s5"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def painted(browser: Browser) -> Callable[[str], dict[str, NDArray[np.bool_]]]:
    """A function that paints a chart; returns which pixels have each colour, by row and column."""

    def paint(chart: str) -> dict[str, NDArray[np.bool_]]:
        page = browser.new_page(viewport={"width": WIDTH, "height": 400})
        page.set_content(f"<!doctype html><style>{STYLES}</style>{chart}")
        data = page.locator("svg.chart").screenshot()
        page.close()
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        return {
            name: np.abs(pixels - np.array(colour)).sum(axis=2) < 20 for name, colour in COLOURS.items()
        }

    return paint


def heights(pixels: NDArray[np.bool_], columns: int) -> list[int]:
    """Return how many pixels of the colour stand over each other in the middle of each column."""
    middles = [round((number + 0.5) * WIDTH / columns) for number in range(columns)]
    return [int(pixels[:, middle].sum()) for middle in middles]


def shares(areas: list[int]) -> list[float]:
    return [area / sum(areas) for area in areas]


def test_bars_of_a_timeline_are_as_high_as_their_values(
    painted: Callable[[str], dict[str, NDArray[np.bool_]]],
) -> None:
    values = [10, 40, 0, 80, 20]
    pixels = painted(timeline([Bar("", str(value), value) for value in values], "Bars"))["bar"]
    found = heights(pixels, len(values))
    assert found == pytest.approx([found[3] * value / 80 for value in values], abs=2)
    assert found[3] == pytest.approx(152, abs=2), "the highest fills the chart"


def test_columns_are_divided_by_class_from_the_bottom_up(
    painted: Callable[[str], dict[str, NDArray[np.bool_]]],
) -> None:
    columns = [TimeColumn("", "", {"ok": ok, "bad": bad}) for ok, bad in [(30, 10), (0, 20), (10, 0)]]
    pixels = painted(stacked_timeline(columns, CLASSES, "Columns"))
    good, bad = heights(pixels["ok"], 3), heights(pixels["bad"], 3)
    one = (good[0] + bad[0]) / 40
    assert good == pytest.approx([30 * one, 0, 10 * one], abs=2)
    assert bad == pytest.approx([10 * one, 20 * one, 0], abs=2)
    middle = WIDTH // 6
    assert np.flatnonzero(pixels["bad"][:, middle]).max() < np.flatnonzero(pixels["ok"][:, middle]).min()


def test_stacked_bars_are_as_long_as_their_values(
    painted: Callable[[str], dict[str, NDArray[np.bool_]]],
) -> None:
    pixels = painted(stacked({"a": {"ok": 60, "bad": 40}, "b": {"ok": 25, "bad": 0}}, CLASSES, "Bars"))
    row_a, row_b = 28, 28 + 42
    assert pixels["ok"][row_a].sum() == pytest.approx(0.6 * WIDTH, abs=2)
    assert pixels["bad"][row_a].sum() == pytest.approx(0.4 * WIDTH, abs=2)
    assert pixels["ok"][row_b].sum() == pytest.approx(0.25 * WIDTH, abs=2)


def test_areas_of_a_treemap_are_as_large_as_their_values(
    painted: Callable[[str], dict[str, NDArray[np.bool_]]],
) -> None:
    groups = {"big": [300, 150, 50], "middle": [200, 100], "small": [200]}
    leaves = {name: [Leaf("", "", value) for value in values] for name, values in groups.items()}
    pixels = painted(treemap(leaves, "Tree"))
    areas = [int(pixels[name].sum()) for name in ("ok", "bad", "bar")]
    assert shares(areas) == pytest.approx([0.5, 0.3, 0.2], abs=0.01)
    assert sum(areas) == pytest.approx(WIDTH * 340, rel=0.02), "they fill the chart"


def test_a_name_that_is_longer_than_its_box_ends_in_an_ellipsis(browser: Browser) -> None:
    long = "media." + 6 * "coastal-archive." + "example"
    chart = treemap(
        {long: [Leaf(f"/{long}/", "", 40), Leaf("/", "", 20)], "b": [Leaf("b", "", 60)]}, "Tree"
    )
    page = browser.new_page(viewport={"width": WIDTH, "height": 400})
    page.set_content(f"<!doctype html><style>{STYLES}</style>{chart}")
    measured = "e => [e.scrollWidth > e.clientWidth, getComputedStyle(e).textOverflow, e.clientWidth]"
    for name, *expected in ((long, True, 300), (f"/{long}/", True, 200), ("b", False, 300)):
        is_cut, overflow, width = page.get_by_text(name, exact=True).evaluate(measured)
        assert overflow == "ellipsis"
        assert [is_cut, width] == [expected[0], pytest.approx(expected[1], abs=1)], name
    page.close()
