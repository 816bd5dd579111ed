"""Which detectors work is said in a line, and which could in another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from amicrawl.archive.index.sidecar.detectors import installed_detectors
from amicrawl.cli.derivatives import show_detectors

BARE = ["amicrawl signatures 3", "declared", "soft404 1"]


Shown = Callable[..., list[str]]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    def show(versions: Sequence[str], *, without: tuple[str, ...] = ()) -> list[str]:
        show_detectors(versions, without=without)
        return capsys.readouterr().err.splitlines()

    return show


def test_with_all_of_them_nothing_is_missing(shown: Shown) -> None:
    versions = installed_detectors().versions()
    assert shown(versions) == [f"Detectors: {', '.join(versions)}"]


def test_what_is_missing_is_named_with_how_to_get_it(shown: Shown) -> None:
    assert shown(BARE)[1:] == [
        "Not installed: fido, libmagic, chardetng, cld2 (pip install 'amicrawl[sidecar]')"
    ]


@pytest.mark.parametrize(
    ("versions", "without"),
    [
        (["fido v111", "python-magic libmagic 544", "declared+chardetng", "cld2 V2.0"], ()),
        (BARE, ("fido", "libmagic", "charset", "languages")),
    ],
)
def test_what_is_left_out_or_installed_is_not_missing(
    shown: Shown, versions: list[str], without: tuple[str, ...]
) -> None:
    assert len(shown(versions, without=without)) == 1
