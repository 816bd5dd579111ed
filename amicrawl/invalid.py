"""What is wrong with what a user wrote: names nearly right, and values that pydantic refuses. Pure."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pydantic import ValidationError

_WHOLE = "it must be a whole number"
_NUMBER = "it must be a number"
_SIZE = "it must be a number of bytes or a size, such as 64MiB"
_SWITCH = "it must be true or false"
_IN_WORDS = {
    "bool_parsing": _SWITCH,
    "bool_type": _SWITCH,
    "byte_size": _SIZE,
    "byte_size_unit": _SIZE,
    "dict_type": "it must be a table: a dictionary, or an object of JSON in double quotes",
    "enum": "it must be {expected}",
    "extra_forbidden": "it is not known here",
    "finite_number": _NUMBER,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "it must be more than {gt:g}",
    "greater_than_equal": "it must be {ge:g} or more",
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "less_than": "it must be less than {lt:g}",
    "less_than_equal": "it must be {le:g} or less",
    "literal_error": "it must be {expected}",
    "missing": "it is missing",
    "string_pattern_mismatch": "it must match {pattern}",
    "string_type": "it must be text",
}
"""By what pydantic calls a fault. Others keep their own words, those of our validators above all."""


def reason_of(fault: Mapping[str, Any]) -> str:
    """Return what is wrong by *fault*, one of pydantic's `errors()`, as in `it must be 0 or more`."""
    words = _IN_WORDS.get(fault["type"])
    if words is None:
        return str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
    return words.format(**fault.get("ctx", {}))


def refusal_of(error: ValidationError, *, prefix: str) -> str:
    """Return one line that names the settings refused by *error*, and the reasons.

    A setting is the field of the same name in capitals, after *prefix*.
    """
    faults = []
    for fault in error.errors():
        reason = reason_of(fault)
        if fault["loc"]:
            setting = prefix + str(fault["loc"][0]).upper()
            reason = f"Setting {setting} is {fault['input']!r}: {reason}"
        faults.append(reason)
    return ". ".join(faults) + ". Change it and start again."


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the one of *known* that *name* was probably meant to be; empty where none is like it.

    *cutoff*: how like it has to be, from 0 to 1.
    """
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), "")


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Return the sentence about a setting *name* that is none of *known*."""
    meant = nearest(name, known)
    advice = f"Did you mean {meant}?" if meant else "See docs/settings.md for the list."
    return f"Unknown setting {name}. {advice}"


def refuse_near_names(
    names: Iterable[str], *, ours: Collection[str], others: Collection[str], prefix: str
) -> None:
    """Raise UsageError for one of *names* that is misspelt for another setting.

    *names* are of settings on a command line; those of *ours* begin with *prefix*, which may be left out
    by mistake, and *others* are those that Scrapy knows. Scrapy accepts a setting that no component
    reads, so a misspelt one would have no effect.
    """
    for name in names:
        if name in others or name in ours:
            continue
        written = name.upper().replace("-", "_")
        full = written if written.startswith(prefix) else prefix + written
        meant = nearest(full, ours, cutoff=0.9) or nearest(written, others, cutoff=0.9)
        if meant:
            raise UsageError(f"Unknown setting {name}. Did you mean {meant}?")
