"""The files of the pages, read as text: nothing inline, nothing from elsewhere, readable colours."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from amicrawl.fleet.dashboard.pages import page_templates
from amicrawl.fleet.dashboard.shapes import State

ROOT = Path(__file__).parents[2] / "amicrawl" / "fleet" / "dashboard"
STATIC, TEMPLATES = ROOT / "static", ROOT / "templates"
FILES = sorted([*STATIC.iterdir(), *TEMPLATES.iterdir()])
SCRIPTS = sorted(STATIC.glob("*.js"))
SHEETS = sorted(STATIC.glob("*.css"))

TEXTS = (
    *product(("ink", "quiet", "accent"), ("ground", "surface", "raised", "sunken", "hover", "chosen")),
    *(
        (state, wash)
        for state in ("good", "note", "warn", "bad")
        for wash in (f"{state}-wash", "surface")
    ),
    *(("odd", "surface"), ("bad", "raised"), ("on-accent", "accent"), ("on-bad", "bad")),
)
"""Text colour and what it stands on."""
AREAS = (
    *product([f"r{mark}" for mark in "12345k"], ["surface"]),
    ("edge", "surface"),
    ("edge", "ground"),
)
"""Bars and frames and what they stand on."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_small_and_loads_nothing_from_elsewhere(file: Path) -> None:
    text = file.read_text()
    assert text.count("\n") <= 200
    addresses = set(re.findall(r"(?:https?:|[\"'`(])//[\w.-]+\.\w+[^\s\"'`<>)]*", text))
    named_only = {"http://www.w3.org/2000/svg", "https://example.org/", r"https?://example"}
    assert not {one for one in addresses if not one.startswith(tuple(named_only))}


OWN_MARKUP = "{% for section in sections %}{{ section|safe }}{% endfor %}"
"""The sections of a report, in which all text was escaped (`archive/report/charts.py`)."""


@pytest.mark.parametrize("file", sorted(TEMPLATES.iterdir()), ids=lambda file: file.name)
def test_a_template_has_no_script_style_or_trust_of_its_own(file: Path) -> None:
    text = file.read_text()
    tags = re.findall(r"<[a-z][^>]*>", re.sub(r"{[{%#].*?[}%#]}", "", text, flags=re.DOTALL))
    assert not [tag for tag in tags if re.search(r"\s(on\w+|style)\s*=", tag)]
    assert "<style" not in text
    inline = [tag for tag in tags if tag.startswith("<script") and "src=" not in tag]
    assert [tag for tag in inline if 'type="application/json"' not in tag] == []
    trusted = text.replace(OWN_MARKUP, "") if file.name in {"_watched.html", "_history.html"} else text
    assert not re.search(r"\|\s*safe\b|autoescape\s+false|Markup", trusted)
    blank = [tag for tag in tags if 'target="_blank"' in tag]
    assert all('rel="noopener noreferrer"' in tag for tag in blank)


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_a_script_parses_no_markup_and_runs_no_text(file: Path) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser|srcdoc"
    )
    text = file.read_text()
    if file.name == "redraw.js":
        # Its own page again, escaped by the server; tests/dashboard/test_watch.py tries hostile rows.
        text = text.replace(
            'new DOMParser().parseFromString(text, "text/html").querySelector(`#${id}`)', ""
        )
    assert not re.search(forbidden, text)


def test_every_icon_that_is_requested_is_there() -> None:
    drawn = set(re.findall(r'<symbol id="(\w+)"', (STATIC / "icons.svg").read_text()))
    requested = set()
    for file in FILES:
        requested |= set(re.findall(r"\bicon\(\"(\w+)\"\)", file.read_text()))
    states = {"running", "queued", "paused", "completed", "aborted", "failed", "silent"}
    assert requested | states <= drawn


def test_every_class_of_the_pages_has_a_style_and_every_name_a_colour() -> None:
    sheets = "".join(sheet.read_text() for sheet in SHEETS)
    colours = set(re.findall(r"(--[\w-]+):", sheets))
    assert set(re.findall(r"var\((--[\w-]+)", sheets)) <= colours


def shades() -> dict[str, tuple[str, str]]:
    """Return each colour of the sheet, light and dark."""
    found = re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (STATIC / "tokens.css").read_text()
    )
    return {name: (light, dark) for name, light, dark in found}


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast as WCAG 2 defines it, 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_bars_stand_out_in_both_schemes(scheme: int) -> None:
    known = shades()
    faint = {
        (one, ground): round(contrast(known[one][scheme], known[ground][scheme]), 2)
        for pairs, least in ((TEXTS, 4.5), (AREAS, 3.0))
        for one, ground in pairs
        if contrast(known[one][scheme], known[ground][scheme]) < least
    }
    assert not faint


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_every_name_that_a_sheet_styles_is_in_a_template_or_a_script(sheet: Path) -> None:
    reports = ROOT.parents[1] / "archive" / "report"
    files = [*TEMPLATES.iterdir(), *SCRIPTS, *reports.glob("*.py")]
    used = set(re.findall(r"[\w-]+", " ".join(file.read_text() for file in files)))
    used |= {f"{kind}{mark}" for kind in "fk" for mark in "12345k"}  # made of a mark
    styled = re.sub(r"\{[^{}]*\}|/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    assert set(re.findall(r"[.#]([a-zA-Z][\w-]*)", styled)) - used == set()


def test_every_icon_that_a_state_names_is_drawn() -> None:
    drawn = set(re.findall(r'id="([a-z]+)"', (STATIC / "icons.svg").read_text()))
    text = '{% import "_parts.html" as parts %}{{ parts.state(state) }}'
    badge = page_templates().from_string(text)
    for state in (*get_args(State), "silent", "draining", "stopping", "ended"):
        (name,) = re.findall(r"icons\.svg#([a-z]+)", badge.render(state=state))
        assert name in drawn, state
