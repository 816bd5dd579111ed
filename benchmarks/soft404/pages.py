"""Pages of both kinds, made up: each follows from its number and the wordings that are used."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from benchmarks.soft404.wordings import WORDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.soft404.wordings import Wordings

_FOLD = 3
_PATHS = (
    "about",
    "news/2012/05/item",
    "products/42",
    "a/b/c.html",
    "index.html",
    "node/404",
    "home",
    "x?id=7",
)
_SITES = ("Riverton Town", "Apex Tools", "blog", "Museum", "IT-Portal", "example.com", "Shop24", "NOVA")


class Fold(StrEnum):
    """Which of the wordings are used."""

    TRAINING = "training"
    HELD_OUT = "held out"
    ALL = "all"


class Page(NamedTuple):
    """One page."""

    html: str
    url: str
    language: str
    is_error: bool
    """Whether it says that there is no such page."""


def pages(count: int, *, fold: Fold) -> Iterator[Page]:
    """Yield *count* pages, in turn of each language and each kind, with the wordings of *fold*."""
    languages = sorted(WORDINGS)
    for number in range(count):
        language = languages[number // 2 % len(languages)]
        source = random.Random(f"{number} {language} {fold}")  # nothing is kept secret by it
        yield _page(source, language, is_error=number % 2 == 0, fold=fold)


def _page(source: random.Random, language: str, *, is_error: bool, fold: Fold) -> Page:
    words = WORDINGS[language]

    def of_fold(wordings: Sequence[str]) -> list[str]:
        if fold is Fold.ALL:
            return list(wordings)
        return [
            each
            for place, each in enumerate(wordings)
            if (place % _FOLD == 2) is (fold is Fold.HELD_OUT)
        ]

    site = source.choice(_SITES)
    title, heading, text = (_missing if is_error else _present)(source, words, of_fold)
    if source.random() < 0.7:
        title = f"{title} {source.choice('-|–:')} {site}"
    menu = source.sample(words.menu, source.randrange(len(words.menu)))
    html = _html(source, title=title, heading=heading, text=text, menu=menu, noindex=is_error)
    url = f"http://www.example.org/{source.choice(_PATHS)}"
    return Page(html, url, language, is_error)


def _missing(
    source: random.Random, words: Wordings, pick: Callable[[Sequence[str]], list[str]]
) -> tuple[str, str, list[str]]:
    titles, messages = pick(words.titles), pick([*words.messages, *_composed(words)])
    title = source.choice(titles)
    heading = source.choice(titles) if source.random() < 0.7 else ""
    text = source.sample(messages, source.choice((1, 1, 2, 3)))
    if source.random() < 0.15:
        title = source.choice(_SITES)  # the title of the site stands over everything
    if source.random() < 0.2:
        text += source.choices(words.prose, k=source.randrange(1, 5))  # offers of what else there is
    return title, heading, text


def _composed(words: Wordings) -> list[str]:
    """Return what can be missing, with what has become of it, each with each."""
    joint = "" if words.fates[0] >= "\u3040" and words.fates[0] < "\ua000" else " "
    pairs = [f"{missed}{joint}{fate}." for missed in words.missed for fate in words.fates]
    # Neighbours are alike; in another order they come to lie in different folds.
    return sorted(pairs, key=lambda pair: crc32(pair.encode()))


def _present(
    source: random.Random, words: Wordings, pick: Callable[[Sequence[str]], list[str]]
) -> tuple[str, str, list[str]]:
    title = source.choice(pick(words.subjects))
    heading = title if source.random() < 0.5 else ""
    if source.random() < 0.2:
        return title, heading, [source.choice(pick(words.short))]
    text = source.choices(pick(words.prose), k=source.choice((1, 1, 2, 3, 5, 10, 30)))
    any_words = [*words.common, *words.missed]  # a file or an article can be there as well
    salad = [" ".join(source.choices(any_words, k=12)) for _ in range(source.choice((0, 1, 2, 4, 12)))]
    text = source.sample(text + salad, len(text) + len(salad))
    if source.random() < 0.3:
        title = f"{title} {' '.join(source.sample(words.common, 3))}"
    return title, heading, text


def _html(
    source: random.Random, *, title: str, heading: str, text: list[str], menu: list[str], noindex: bool
) -> str:
    robots = (
        '<meta name="robots" content="noindex">' if source.random() < (0.3 if noindex else 0.1) else ""
    )
    script = "<script>var page = {found: 404};</script>" if source.random() < 0.5 else ""
    links = "".join(f'<li><a href="/{place}">{each}</a></li>' for place, each in enumerate(menu))
    level = source.choice(("h1", "h2", "h3"))
    top = f"<{level}>{heading}</{level}>" if heading else ""
    body = "".join(f"<p>{each}</p>" for each in text)
    foot = f"<footer>© {source.randrange(1998, 2024)}</footer>" if source.random() < 0.5 else ""
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title>{robots}{script}</head>"
        f"<body><ul>{links}</ul>{top}{body}{foot}</body></html>"
    )
