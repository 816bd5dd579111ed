"""What is wrong with a value that pydantic refuses, in a user's words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
