"""Kinds of values that a crawl file has: what fits, in words, for pydantic and as JSON Schema. Pure.

A kind judges the value as TOML gives it, in pydantic's strict mode: `"2"` is not a number. What fits may
still be wrong (an expression that does not compile); that is for `checks.py` to say.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ByteSize, ConfigDict, Field, TypeAdapter, ValidationError

from amicrawl.config import DEEPEST

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZE = r"^[0-9]+(\.[0-9]+)? ?([kKmMgGtTpP][iI]?[bB]|[kKmMgGtTpPbB])?$"
_REFERENCE = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\s].*|)$"
_INF_OR_SHALLOW = Literal["inf", "shallow"]
_DURATION = r"^[1-9][0-9]{0,5}[mhdw]$"
_BYTES: TypeAdapter[int] = TypeAdapter(ByteSize)
_STRICT = ConfigDict(strict=True, regex_engine="python-re")


class ValueKind:
    """One kind of value."""

    def __init__(self, wanted: str, takes: Any, *, is_path: bool = False) -> None:
        self.wanted = wanted
        """What the value must be: `a number, 0 or more`."""
        self._takes = takes
        """The type, with its constraints."""
        self.is_path = is_path
        """Whether the value names something to read: a relative path starts from the file's place."""

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        # Made when it is needed: a crawl file has some of the hundred keys.
        return TypeAdapter(self._takes, config=_STRICT)

    @property
    def schema(self) -> dict[str, Any]:
        """The kind as JSON Schema (2020-12)."""
        return self._adapter.json_schema()

    def fits(self, value: object) -> bool:
        """Return whether *value* is of this kind."""
        try:
            self._adapter.validate_python(value)
        except ValidationError:
            return False
        return True


def number(
    *, least: float | None = None, above: float | None = None, most: int | None = None
) -> ValueKind:
    """Return the kind of finite numbers, *least* or more, or greater than *above*, to *most*."""
    limits = Field(ge=least, gt=above, le=most, allow_inf_nan=False)
    range_ = _bounds(least, above) if most is None else f" from {least} to {most}"
    return ValueKind(f"a number{range_}", Annotated[float, limits])


def integer(*, least: int | None = None, most: int | None = None) -> ValueKind:
    """Return the kind of whole numbers from *least* to *most*."""
    range_ = _bounds(least, None) if most is None else f" from {least} to {most}"
    return ValueKind(f"an integer{range_}", Annotated[int, Field(ge=least, le=most)])


def size(*, least: int = 0) -> ValueKind:
    """Return the kind of sizes in bytes, *least* or more: whole numbers, or strings such as `64MiB`."""

    def is_enough(text: str) -> str:
        if _BYTES.validate_python(text) < least:
            raise ValueError("too small")
        return text

    written: Any = Annotated[_one_line(_SIZE), AfterValidator(is_enough)]
    return ValueKind(
        f'bytes, {least} or more, or a size such as "64MiB"',
        Annotated[int, Field(ge=least)] | written,
    )


def switch() -> ValueKind:
    """Return the kind of `true` and `false`."""
    return ValueKind("true or false", bool)


def choice(words: Sequence[str]) -> ValueKind:
    """Return the kind of strings that are one of *words*."""
    *others, last = (f'"{word}"' for word in words)
    return ValueKind(f"{', '.join(others)} or {last}" if others else last, Literal[tuple(words)])


def text(wanted: str = "a string", *, pattern: str | None = None, is_path: bool = False) -> ValueKind:
    """Return the kind of strings that *pattern*, if there is one, is found in."""
    return ValueKind(wanted, _one_line(pattern), is_path=is_path)


def _one_line(pattern: str | None) -> Any:
    """Return the type of strings that *pattern* is found in, whose `$` is the end of the string.

    To Python's `re` it is also the place before a line end there; to JSON Schema it is not.
    """

    def ends_there(text: str) -> str:
        if text.endswith("\n") and pattern is not None and pattern.endswith("$"):
            raise ValueError("a line end")
        return text

    return Annotated[str, Field(pattern=pattern), AfterValidator(ends_there)]


def texts(wanted: str = "a list of strings", *, is_path: bool = False) -> ValueKind:
    """Return the kind of lists of strings."""
    return ValueKind(wanted, list[str], is_path=is_path)


def text_or_texts(wanted: str) -> ValueKind:
    """Return the kind of a string, or a list of them that is not empty."""
    return ValueKind(wanted, str | Annotated[list[str], Field(min_length=1)])


def reference() -> ValueKind:
    """Return the kind of references to secrets: `env:NAME` and `file:PATH`."""
    return text('"env:NAME" or "file:PATH"', pattern=_REFERENCE, is_path=True)


def duration() -> ValueKind:
    """Return the kind of spans of time: `30m`, `12h`, `7d`, `4w`."""
    return text('a span of time such as "30m", "12h", "7d" or "4w"', pattern=_DURATION)


def depth() -> ValueKind:
    """Return the kind of depths: `inf`, `shallow`, or a number of links."""
    return ValueKind(
        f'"inf", "shallow" or a number up to {DEEPEST}',
        _INF_OR_SHALLOW | Annotated[int, Field(ge=0, le=DEEPEST)],
    )


def fields() -> ValueKind:
    """Return the kind of a table of strings."""
    return ValueKind("a table of strings", dict[str, str])


def _bounds(least: float | None, above: float | None) -> str:
    if above is not None:
        return f" greater than {above:g}"
    return f", {least:g} or more" if least is not None else ""
