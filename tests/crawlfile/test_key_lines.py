"""The lines of keys are those on which they were written, whatever stands between them."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.crawlfile.lines import key_lines

if TYPE_CHECKING:
    from amicrawl.crawlfile.lines import Path

NAMES = st.sampled_from(["a", "b", "c-1", "x.y", 'q"', "é", "", "[t]", "#", "k = 1"])
SCALARS = st.sampled_from(
    [
        "1", "-2.5e3", "true", "inf", "1979-05-27 07:32:00", "1979-05-27T07:32:00Z", '"]"', '"\\" # no"',
        "'#[}'", '"""one"""', '"""\nin\n# three ] lines\n"""', '"""a\\"""b\n"""""', "'''\n'' two\n'''''",
        '"""\\\n   x"""', "'''\n[not.a.header]\nkey = 1\n'''", '""', "''",
    ]
)  # fmt: skip
GAPS = st.sampled_from(["", "\n", "# a comment with \" and ''' and [x]\n", "\n\n  \n"])


class Written:
    """A TOML text as it is written, and the line of every key: the oracle counts as it goes."""

    def __init__(self) -> None:
        self.text = ""
        self.lines: dict[Path, int] = {}

    def put(self, text: str) -> None:
        self.text += text

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)


def key_text(name: str, *, bare: bool) -> str:
    return name if bare and name in ("a", "b", "c-1") else json.dumps(name)


def write_value(draw: Any, out: Written, path: Path, depth: int) -> None:
    shape = draw(st.sampled_from(["scalar", "scalar", "array", "inline"] if depth else ["scalar"]))
    if shape == "scalar":
        out.put(draw(SCALARS))
    elif shape == "array":
        out.put("[" + draw(GAPS))
        for place in range(draw(st.integers(0, 3))):
            out.note((*path, place))
            write_value(draw, out, (*path, place), depth - 1)
            out.put("," + draw(GAPS))
        out.put("]")
    else:
        out.put("{ ")
        for n, name in enumerate(draw(st.lists(NAMES, max_size=3, unique=True))):
            out.put(", " if n else "")
            out.note((*path, name))
            out.put(key_text(name, bare=draw(st.booleans())) + " = ")
            write_value(draw, out, (*path, name), 0)
        out.put(" }")


def write_pairs(draw: Any, out: Written, table: Path) -> None:
    for name in draw(st.lists(NAMES, max_size=3, unique=True)):
        out.put(draw(GAPS) + draw(st.sampled_from(["", "  ", "\t"])))
        path: Path = (*table, name)
        out.note(path)
        out.put(key_text(name, bare=draw(st.booleans())))
        if draw(st.booleans()):
            path = (*path, "dotted")
            out.note(path)
            out.put(" . 'dotted'")
        out.put(" =")
        write_value(draw, out, path, 2)
        out.put(draw(st.sampled_from(["\n", " # ]\n"])))


@st.composite
def documents(draw: Any) -> Written:
    out = Written()
    write_pairs(draw, out, ())
    for n in range(draw(st.integers(0, 3))):
        out.put(draw(GAPS))
        if draw(st.booleans()):
            out.note((f"t{n}",))
            out.note((f"t{n}", "x.y"))
            out.put(f"[ t{n} . 'x.y' ]\n")
            write_pairs(draw, out, (f"t{n}", "x.y"))
        else:
            out.note(("list",))
            place = sum(1 for path in out.lines if len(path) == 2 and path[0] == "list")
            out.note(("list", place))
            out.put("[[list]] # [\n")
            write_pairs(draw, out, ("list", place))
    return out


def paths_of(value: Any, path: Path = ()) -> set[Path]:
    """Return every path in what tomllib has read."""
    named = list(value.items() if isinstance(value, dict) else enumerate(value))
    found: set[Path] = set()
    for key, entry in named:
        found.add((*path, key))
        if isinstance(entry, (dict, list)):
            found |= paths_of(entry, (*path, key))
    return found


@pytest.mark.slow
@given(documents())
def test_every_key_is_found_on_the_line_it_was_written_on(written: Written) -> None:
    try:
        read = tomllib.loads(written.text)
    except tomllib.TOMLDecodeError:
        return  # `list` was a key before it became an array of tables
    lines = key_lines(written.text)
    assert lines == written.lines
    assert set(lines) == paths_of(read)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_both_line_ends_count_once(ending: str) -> None:
    source = ending.join(["# one", "a = 1", "", "[t]", "b = [", "1,", "]", "c = 2"])
    assert key_lines(source.replace("\r\n", "\n"))["t", "c"] == 8


def test_a_table_below_one_of_an_array_belongs_to_the_latest() -> None:
    lines = key_lines("[[a]]\n[[a]]\n[a.b]\nc = 1\n[[a.d]]\n[[a]]\n[a.b]\n")
    assert lines["a", 1, "b", "c"] == 4
    assert lines["a", 1, "d", 0] == 5
    assert lines["a", 2, "b"] == 7


def test_a_large_text_is_read_in_one_pass() -> None:
    source = "".join(f'k{n} = """{"x" * 50}\n"""\n' for n in range(5000))
    assert key_lines(source)["k4999",] == 9999
