"""Kinds of values that stand in a crawl file: what fits, in words and as JSON Schema. Pure.

A kind judges the value as TOML gives it, without reading anything into it: `"2"` is not a number. What
fits may still be wrong (an expression that does not compile); that is for `checks.py` to say.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import ByteSize, TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SIZE = r"^[0-9]+(\.[0-9]+)? ?([kKmMgGtTpP][iI]?[bB]|[kKmMgGtTpPbB])?$"
_REFERENCE = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\s].*|)$"
_DURATION = r"^[1-9][0-9]{0,5}[mhdw]$"
_BYTES: TypeAdapter[int] = TypeAdapter(ByteSize)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value."""

    wanted: str
    """What the value must be: `a number, 0 or more`."""
    schema: Mapping[str, Any]
    """The same as JSON Schema (2020-12)."""
    fits: Callable[[object], bool]
    is_path: bool = False
    """Whether the value names something to read: a relative path starts from the crawl file's place."""


def number(*, least: float | None = None, above: float | None = None) -> Kind:
    """Return the kind of finite numbers, *least* or more, or greater than *above*."""
    return Kind(
        f"a number{_bounds(least, above)}",
        {"type": "number", **_limits(least, above)},
        lambda value: _is_number(value) and math.isfinite(value) and _within(value, least, above),
    )


def integer(*, least: int | None = None, most: int | None = None) -> Kind:
    """Return the kind of whole numbers from *least* to *most*."""
    wanted = f"an integer{_bounds(least, None)}"
    schema = {"type": "integer", **_limits(least, None)}
    if most is not None:
        wanted = f"an integer from {least} to {most}"
        schema["maximum"] = most
    return Kind(
        wanted,
        schema,
        lambda value: (
            isinstance(value, int)
            and not isinstance(value, bool)
            and _within(value, least, None)
            and (most is None or value <= most)
        ),
    )


def size(*, least: int = 0) -> Kind:
    """Return the kind of sizes in bytes, *least* or more: whole numbers, or texts such as `64MiB`."""

    def fits(value: object) -> bool:
        if isinstance(value, str) and not re.fullmatch(_SIZE, value):
            return False
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            return False
        return (value if isinstance(value, int) else _BYTES.validate_python(value)) >= least

    return Kind(
        f'bytes, {least} or more, or a size such as "64MiB"',
        {"anyOf": [{"type": "integer", "minimum": least}, {"type": "string", "pattern": _SIZE}]},
        fits,
    )


def switch() -> Kind:
    """Return the kind of `true` and `false`."""
    return Kind("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))


def choice(words: Sequence[str]) -> Kind:
    """Return the kind of texts that are one of *words*."""
    *others, last = (f'"{word}"' for word in words)
    wanted = f"{', '.join(others)} or {last}" if others else last
    return Kind(wanted, {"enum": list(words)}, lambda value: isinstance(value, str) and value in words)


def text(wanted: str = "a string", *, pattern: str | None = None, is_path: bool = False) -> Kind:
    """Return the kind of texts that *pattern*, if there is one, is found in."""
    schema: dict[str, Any] = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = pattern
    return Kind(
        wanted,
        schema,
        lambda value: isinstance(value, str) and (pattern is None or bool(re.search(pattern, value))),
        is_path=is_path,
    )


def texts(wanted: str = "a list of strings", *, is_path: bool = False) -> Kind:
    """Return the kind of lists of texts."""
    return Kind(
        wanted,
        {"type": "array", "items": {"type": "string"}},
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
        is_path=is_path,
    )


def text_or_texts(wanted: str) -> Kind:
    """Return the kind of a text, or a list of them that is not empty."""
    several = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    return Kind(
        wanted,
        {"anyOf": [{"type": "string"}, several]},
        lambda value: (
            isinstance(value, str)
            or (isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value))
        ),
    )


def reference() -> Kind:
    """Return the kind of references to secrets: `env:NAME` and `file:PATH`."""
    return text('"env:NAME" or "file:PATH"', pattern=_REFERENCE, is_path=True)


def duration() -> Kind:
    """Return the kind of spans of time: `30m`, `12h`, `7d`, `4w`."""
    return text('a span of time such as "30m", "12h", "7d" or "4w"', pattern=_DURATION)


def fields() -> Kind:
    """Return the kind of a table of texts."""
    return Kind(
        "a table of strings",
        {"type": "object", "additionalProperties": {"type": "string"}},
        lambda value: (
            isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())
        ),
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _within(value: Any, least: float | None, above: float | None) -> bool:
    return (least is None or value >= least) and (above is None or value > above)


def _bounds(least: float | None, above: float | None) -> str:
    if above is not None:
        return f" greater than {above:g}"
    return f", {least:g} or more" if least is not None else ""


def _limits(least: float | None, above: float | None) -> dict[str, Any]:
    limits = {} if least is None else {"minimum": least}
    return limits if above is None else {**limits, "exclusiveMinimum": above}
