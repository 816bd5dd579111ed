"""siegfried as the one that gives PRONOM identifiers: a program of its own, here a stand-in for it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from amicrawl.index.sidecar.characterise import Characteriser
from amicrawl.index.sidecar.detectors import Detectors
from amicrawl.index.sidecar.siegfried import Siegfried
from amicrawl.index.sidecar.subject import Subject

if TYPE_CHECKING:
    from pathlib import Path

VERSION = (
    "siegfried 1.11.1\n/usr/share/siegfried/default.sig (2024-06-28)\nidentifiers: \n  - pronom: V118\n"
)


def match(puid: str, *, mime: str = "", namespace: str = "pronom") -> dict[str, str]:
    return {
        "ns": namespace,
        "id": puid,
        "format": "x",
        "mime": mime,
        "basis": "byte match",
        "warning": "",
    }


def answer(*matches: dict[str, str]) -> dict[str, Any]:
    file = {"filename": "-", "filesize": 1, "modified": "", "errors": "", "matches": list(matches)}
    return {"siegfried": "1.11.1", "identifiers": [{"name": "pronom"}], "files": [file]}


def stand_in(folder: Path, said: object, *, code: int = 0) -> Path:
    """Return a program that speaks as `sf` does, and keeps what it was given."""
    program = folder / "sf"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "from pathlib import Path\n"
        "given = sys.stdin.buffer.read()\n"
        f"if sys.argv[1:] == ['-version']: print({VERSION!r}, end=''); sys.exit(0)\n"
        "assert sys.argv[1:] == ['-json', '-'], sys.argv\n"
        f"(Path({str(folder)!r}) / 'given').write_bytes(given)\n"
        f"print({said if isinstance(said, str) else json.dumps(said)!r})\n"
        f"sys.exit({code})\n"
    )
    program.chmod(0o755)
    return program


def test_its_answer_is_the_media_type_and_the_identifier(tmp_path: Path) -> None:
    said = answer(match("nonsense", namespace="loc"), match("fmt/96", mime="text/html, text/x"))
    siegfried = Siegfried(stand_in(tmp_path, said))
    assert siegfried.identify(b"<html>\x00", is_whole=True) == ("text/html", "fmt/96")
    assert (tmp_path / "given").read_bytes() == b"<html>\x00"
    assert siegfried.version.startswith("siegfried 1.11.1 /usr/share/siegfried/default.sig (2024-06-28)")


def test_what_it_does_not_know_has_no_identifier(tmp_path: Path) -> None:
    siegfried = Siegfried(stand_in(tmp_path, answer(match("UNKNOWN"))))
    assert siegfried.identify(b"?", is_whole=True) == ("", "")


@pytest.mark.parametrize(
    ("said", "code", "error"),
    [
        (answer(match("fmt/96")), 1, "CalledProcessError"),
        ({"files": []}, 0, "ValueError"),
        ({"files": [{"matches": [{"ns": "pronom", "id": 7}]}]}, 0, "ValueError"),
        ("no JSON", 0, "JSONDecodeError"),
    ],
)
def test_a_program_that_fails_costs_its_answer_and_no_other(
    tmp_path: Path, said: object, code: int, error: str
) -> None:
    siegfried = Siegfried(stand_in(tmp_path, said, code=code))
    found = Characteriser(Detectors(types=(siegfried,))).findings(Subject(b"x"))
    assert (found.errors, found.puid) == ({"siegfried": error}, "")


@pytest.mark.parametrize("text", ["", "no program"])
def test_where_it_is_not_installed_it_is_left_out(tmp_path: Path, text: str) -> None:
    if text:
        (tmp_path / "sf").write_text(text)
    with pytest.raises(ImportError, match="does not run"):
        Siegfried(tmp_path / "sf")
