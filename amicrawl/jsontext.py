"""JSON of ours, read and written.

What is read has its values counted before it is parsed: three bytes can become a dictionary.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_VALUES = 4_000_000
"""Values that a document may have, about; they take some hundred megabytes."""
LARGEST_FILE = 256 << 20
_PIECE = 1 << 20


def parsed(
    content: bytes, *, most: int = MOST_VALUES, loads: Callable[[bytes], Any] = orjson.loads
) -> Any:
    """Return what *content* says; ValueError where it is not JSON or has more than *most* values.

    *loads* is `json.loads` where half surrogate pairs may stand in it.
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise ValueError(f"it has more than {most:,} values")
    try:
        return loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def parsed_file(path: Path, *, loads: Callable[[bytes], Any] = orjson.loads) -> Any:
    """Return what the file *path* says; OSError, and ValueError as `parsed`, or where it is large."""
    with path.open("rb") as file:
        # By pieces: one read of that many bytes has room made for all of them, however small the file.
        pieces = iter(partial(file.read, _PIECE), b"")
        content = b"".join(islice(pieces, LARGEST_FILE // _PIECE + 1))
    if len(content) > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
    return parsed(content, loads=loads)


def written(value: Any, *, option: int = orjson.OPT_APPEND_NEWLINE) -> bytes:
    """Return *value* as JSON, as orjson does with *option*.

    What is not UTF-8 in it, such as a byte of the name of a directory, becomes a question mark.
    """
    try:
        return orjson.dumps(value, default=str, option=option)
    except orjson.JSONEncodeError:
        text = json.dumps(value, default=str, ensure_ascii=False)
        return orjson.dumps(orjson.loads(text.encode("utf-8", "replace")), option=option)
