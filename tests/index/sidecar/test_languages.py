"""The first language of a page is the page's, in sixty languages, and shares tell the others."""

from __future__ import annotations

from collections import Counter

import pytest

from amicrawl.archive.index.sidecar.detectors import Characteriser, installed_detectors
from benchmarks.languages import Tally, declarations, languages_found, shapes

pytest.importorskip("pycld2", reason="needs the extra [sidecar]")


@pytest.fixture(scope="module")
def tallies() -> dict[str, Tally]:
    characteriser = Characteriser(installed_detectors(["fido", "libmagic", "soft-404"]))
    counted = {}
    for name, pages in shapes().items():
        counted[name] = Tally()
        for page in pages:
            counted[name].add(page, languages_found(characteriser, page))
    return counted


@pytest.mark.parametrize(
    ("shape", "pages", "taken"),
    [
        # Indonesian and Malay differ less than two authors do.
        ("nothing declared", 60, {"ind as msa": 1}),
        ("one sentence or two", 60, {}),
        ("template in English", 60, {}),
        ("older charset", 44, {"ind as msa": 1}),
        ("half in English", 59, {"ind,eng as msa,eng": 1, "mkd,eng as mkd,eng,srp": 1}),
    ],
)
def test_the_codes_of_pages_in_sixty_languages_are_right(
    tallies: dict[str, Tally], shape: str, pages: int, taken: dict[str, int]
) -> None:
    tally = tallies[shape]
    assert tally.pages == pages
    # Another version of CLD2 may be better.
    assert not tally.taken - Counter(taken)
    assert tally.right == pages - tally.taken.total()


def test_the_set_has_sixty_languages_of_eight_articles() -> None:
    texts = declarations()
    assert len(texts) == 60
    assert all(len(articles) == 8 and all(articles) for articles in texts.values())
