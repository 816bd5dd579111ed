"""`python -m benchmarks.soft404 [MODEL]`: make the soft-404 model and weigh it.

What it is worth is measured on a model that was kept from a third of all wordings, with pages that use
those. The one that is shipped has seen all of them, and should do no worse on the pages of others.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path

from amicrawl.archive.index.sidecar.soft404 import Soft404Model
from benchmarks.soft404.fit import Fit, fit, worth
from benchmarks.soft404.pages import Fold, pages
from benchmarks.soft404.wordings import WORDINGS

VERSION = "1"
TRAINED_ON = 16_800
MEASURED_ON = 5_600


def main() -> None:
    """Write the model to the path given, by default over the one that is shipped."""
    target = (
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(str(files("amicrawl.archive.index.sidecar") / "soft404.json"))
    )
    made = _model(Fold.ALL)
    measured = _shown(_model(Fold.TRAINING))
    held_out = list(pages(MEASURED_ON, fold=Fold.HELD_OUT))
    by_language = {
        language: worth(measured, [page for page in held_out if page.language == language])._asdict()
        for language in sorted(WORDINGS)
    }
    whole = worth(measured, held_out)._asdict()
    described = {
        "version": VERSION,
        "trained_on": TRAINED_ON,
        "held_out": whole | {"by_language": by_language},
        "intercept": made.intercept,
        "weights": made.weights,
    }
    target.write_text(
        json.dumps(described, indent=0, ensure_ascii=False, sort_keys=False) + "\n", "utf-8"
    )
    sys.stdout.write(json.dumps(described["held_out"]) + "\n")


def _model(fold: Fold) -> Fit:
    return fit(list(pages(TRAINED_ON, fold=fold)))


def _shown(made: Fit) -> Soft404Model:
    return Soft404Model(made.weights, intercept=made.intercept, version=VERSION)


if __name__ == "__main__":
    main()
