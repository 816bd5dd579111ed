"""Which detectors work is said in a line, and which could in another."""

from __future__ import annotations

import pytest

from amicrawl.cli.sidecar import detector_lines
from amicrawl.index.sidecar.detectors import installed_detectors

BARE = ["signatures signatures 1", "declared", "soft404 1"]


def test_with_all_of_them_nothing_is_missing() -> None:
    versions = installed_detectors().versions()
    assert list(detector_lines(versions)) == [f"Detectors: {', '.join(versions)}"]


def test_what_is_missing_is_named_with_how_to_get_it() -> None:
    assert list(detector_lines(BARE))[1:] == [
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
    versions: list[str], without: tuple[str, ...]
) -> None:
    assert len(list(detector_lines(versions, without=without))) == 1
