"""The fit: logistic regression with a penalty on large weights, by gradient descent. Pure.

Nothing in it is random, and weights are rounded, so that the same pages give the same model anywhere.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from amicrawl.archive.index.sidecar.soft404 import features_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amicrawl.archive.index.sidecar.soft404 import Soft404Model
    from benchmarks.soft404.pages import Page

ROUNDS = 400
PENALTY = 1.0
RATE = 0.05
LEAST_PAGES = 4
"""Pages that a feature has to be on to be learnt."""
LEAST_WEIGHT = 0.02
"""Weights nearer to none than this are left out."""
_DIGITS = 3


class Fit(NamedTuple):
    """A model."""

    weights: dict[str, float]
    intercept: float


class Worth(NamedTuple):
    """How a model does on pages."""

    pages: int
    precision: float
    """Of the pages that it calls missing, the share that are."""
    recall: float
    """Of the pages that are missing, the share that it calls so."""


def fit(pages: Sequence[Page]) -> Fit:
    """Return the model that tells *pages* apart best."""
    found = [sorted(features_of(page.html, page.url).names()) for page in pages]
    counts = Counter(feature for each in found for feature in each)
    names = sorted(feature for feature, count in counts.items() if count >= LEAST_PAGES)
    place = {name: number for number, name in enumerate(names)}
    columns = np.array([place[feature] for each in found for feature in each if feature in place])
    lengths = [sum(feature in place for feature in each) for each in found]
    rows = np.repeat(np.arange(len(found)), lengths)
    wanted = np.array([page.is_error for page in pages], dtype=np.float64)
    is_word = np.array([name.startswith(("t:", "b:")) for name in names])
    weights, intercept = _descend(rows, columns, wanted, is_word)
    kept = {
        name: round(float(weight), _DIGITS)
        for name, weight in zip(names, weights, strict=True)
        if abs(weight) >= LEAST_WEIGHT
    }
    return Fit(kept, round(intercept, _DIGITS))


def _descend(rows: Any, columns: Any, wanted: Any, is_word: Any) -> tuple[Any, float]:
    """Return weights and intercept, by Adam's steps over all pages at once."""
    count, features = len(wanted), len(is_word)
    state = np.zeros((3, features + 1))  # weights, mean of the slopes, mean of their squares
    for step in range(1, ROUNDS + 1):
        weights = state[0]
        sums = np.bincount(rows, weights[columns], minlength=count) + weights[-1]
        wrong = 1 / (1 + np.exp(-np.clip(sums, -30, 30))) - wanted
        slope = np.append(np.bincount(columns, wrong[rows], minlength=features), wrong.sum())
        slope[:-1] += PENALTY * weights[:-1]
        slope /= count
        state[1] = 0.9 * state[1] + 0.1 * slope
        state[2] = 0.999 * state[2] + 0.001 * slope**2
        mean, square = state[1] / (1 - 0.9**step), state[2] / (1 - 0.999**step)
        state[0] = weights - RATE * mean / (np.sqrt(square) + 1e-8)
        # Words speak for a page's being missing or for nothing: that one is about jobs says little.
        state[0][:-1][is_word] = np.maximum(state[0][:-1][is_word], 0)
    return state[0][:-1], float(state[0][-1])


def worth(model: Soft404Model, pages: Iterable[Page]) -> Worth:
    """Return how *model* does on *pages*, where half a chance or more counts as missing."""
    counts: Counter[tuple[bool, bool]] = Counter()
    for page in pages:
        counts[page.is_error, model.of_page(page.html, page.url) >= 0.5] += 1
    hits, false, missed = counts[True, True], counts[False, True], counts[True, False]
    return Worth(
        counts.total(), round(hits / max(hits + false, 1), 4), round(hits / max(hits + missed, 1), 4)
    )
