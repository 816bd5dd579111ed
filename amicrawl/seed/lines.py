"""Lines: a stream of bytes cut at line feeds, and the seed list that has one URL on each.

A line may be 8 MiB; of a longer one nothing is kept. The last line needs no line feed, unless the source
was cut: half a URL is another URL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.seed.fields import WHITE_SPACE, checked_url
from amicrawl.seed.seed import NotASeedError, Seed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.seed import FaultLog
    from amicrawl.seed.source import SeedSource

MAX_LINE = 8 * 1024**2
"""Bytes that a line may have, its end not counted."""

_BOM = b"\xef\xbb\xbf"
_BLANKS = WHITE_SPACE.encode()


def lines_of(blocks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of *blocks* without line feeds; None for one that is longer than `MAX_LINE`."""
    pending: list[bytes] = []
    size = 0
    for block in blocks:
        first, *rest = block.split(b"\n")
        size += len(first)
        if size <= MAX_LINE:
            pending.append(first)
        else:
            pending.clear()
        if not rest:
            continue
        yield b"".join(pending) if size <= MAX_LINE else None
        last = rest.pop()
        for line in rest:
            yield line if len(line) <= MAX_LINE else None
        pending, size = [last], len(last)
    if size:
        yield b"".join(pending) if size <= MAX_LINE else None


def read_lines(
    source: SeedSource, faults: FaultLog, *, parse: Callable[[bytes, Flaw], Seed | None]
) -> Generator[Seed, None, None]:
    """Yield what *parse* makes of each line of *source*: a seed, or None for nothing.

    Lines for which it raises NotASeedError are reported and passed over.
    """
    number = 0

    def flaw(reason: str) -> None:
        faults.flaw(source.name, number, reason)

    try:
        for number, line in enumerate(lines_of(source.blocks), 1):
            if line is None:
                too_long = NotASeedError(f"the line is longer than {MAX_LINE} bytes")
                faults.leave_out(source.name, number, too_long)
                continue
            try:
                seed = parse(line.removeprefix(_BOM) if number == 1 else line, flaw)
            except NotASeedError as reason:
                faults.leave_out(source.name, number, reason)
                continue
            if seed is not None:
                yield seed
    except InputError as error:
        faults.end_early(source.name, number + 1, error)


def seed_of_line(line: bytes, flaw: Flaw) -> Seed | None:
    """Return the URL on *line* as a seed; None for a blank line or one that starts with `#`."""
    text = line.strip(_BLANKS)
    if not text or text.startswith(b"#"):
        return None
    if text.startswith(b"{"):
        raise NotASeedError("the line is JSON; give jsonl as the format")
    if text.startswith(b"["):
        raise NotASeedError(
            "a JSON array is not a seed list; convert it to one object per line with jq -c '.[]'"
        )
    if b"\t" in text or b"\r" in text:
        # Neither is ever in a URL; escaped, both would make another one of it.
        raise NotASeedError(_IN_A_LINE[b"\r" in text])
    return Seed(checked_url(utf8(text), flaw))


_IN_A_LINE = (
    "the line has a tab in it, as between columns; give its URL alone",
    "the line has a carriage return in it; end each line with a line feed (tr '\\r' '\\n')",
)


def seed_of_cell(line: bytes, flaw: Flaw) -> Seed | None:
    """Return the same of a file that is called a table: a line with columns is not taken for a URL."""
    if b"," in line or b"\t" in line.strip(_BLANKS):
        raise NotASeedError(
            "the line has columns; give its URL alone, or JSON Lines or Parquet, or lines as the format"
        )
    return seed_of_line(line, flaw)


def utf8(text: bytes) -> str:
    """Decode *text*; raise NotASeedError where it is not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise NotASeedError(f"the line is not UTF-8 (byte {error.start + 1} of it)") from error
