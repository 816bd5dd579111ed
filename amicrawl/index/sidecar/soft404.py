"""The probability that a page says that there is no such page, though its status says 200.

A model of logistic regression over words: the weights of the features that a page has are added up. It
is data (`soft404.json`), made by `python -m amicrawl.index.sidecar.training`; how good it is stands in
it, measured on wordings that it was not shown.
"""

from __future__ import annotations

import json
from importlib.resources import files
from math import exp, fsum
from typing import TYPE_CHECKING, Any

from amicrawl.index.sidecar.charset import read
from amicrawl.index.sidecar.soft404_features import PAGE_LIMIT, features_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.index.sidecar.findings import Charset
    from amicrawl.index.sidecar.subject import Subject

_MOST = 30.0
_BYTES = 4 * PAGE_LIMIT
_DIGITS = 6
_LEAST = 10.0**-_DIGITS


class Soft404Model:
    """Weights by feature."""

    def __init__(self, weights: Mapping[str, float], *, intercept: float, version: str) -> None:
        self._title = _kind(weights, "t:")
        self._body = _kind(weights, "b:")
        self._rest = {name: weight for name, weight in weights.items() if name[:2] not in ("t:", "b:")}
        pairs = [name.partition(" ") for name in (*self._title, *self._body)]
        self._pairs = frozenset((first, second) for first, blank, second in pairs if blank)
        self._intercept = intercept
        self.version = f"soft404 {version}"

    @classmethod
    def shipped(cls) -> Soft404Model:
        """Return the model that comes with the package."""
        text = (files("amicrawl.index.sidecar") / "soft404.json").read_text("utf-8")
        model: dict[str, Any] = json.loads(text)
        return cls(model["weights"], intercept=model["intercept"], version=model["version"])

    def probability(self, subject: Subject, charset: Charset) -> float:
        """Return the probability for the page *subject*, above 0 and below 1, to six digits."""
        page = read(subject.content[:_BYTES], charset)
        return self.of_page(page, subject.url)

    def of_page(self, page: str, url: str) -> float:
        """Return the probability for *page*, shown under *url*."""
        features = features_of(page, url, of_pairs=self._pairs)
        met = [
            weights[each]
            for found, weights in (
                (features.title, self._title),
                (features.body, self._body),
                (features.rest, self._rest),
            )
            for each in found
            if each in weights
        ]
        # Exact, so that the order in which a set is walked does not show in the last digit.
        total = self._intercept + fsum(met)
        chance = 1 / (1 + exp(-max(-_MOST, min(_MOST, total))))
        return min(max(round(chance, _DIGITS), _LEAST), 1 - _LEAST)


def _kind(weights: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name[len(prefix) :]: weight for name, weight in weights.items() if name.startswith(prefix)}
