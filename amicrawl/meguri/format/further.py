"""Further files: the strings of a frontier that are more than one file can hold.

The strings of a file are one page, whose length is a number of 32 bits. Where there are more, further
files go on where the strings of the first end. They are frontier files without rows:

    snap-2.meguri             rows, schedule and seen-set, and the first 4 GiB of strings
    snap-2.strings-1.meguri   the next 4 GiB; -2 and so on follow

References count from the first octet of the first file on. Its metadata has the checksums of the string
regions of the others, and it gets its name last: it is whole only together with just those. To other
software a reference beyond the first file leads nowhere, which reads as absent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from amicrawl.meguri.format.faults import Malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    Meta = Iterable[tuple[bytes, bytes]]

FURTHER: Final = b"amicrawl.strings"
"""The metadata key of a first file, which says what is in the others."""
BEGIN: Final = b"amicrawl.strings_from"
"""The metadata key of the others, which says how many octets of strings are in the files before."""
NAMED: Final = r"\.strings-[1-9][0-9]{0,3}"
"""What the name of a further file has before its ending, as a regular expression."""
_EACH = re.compile(rb"[0-9a-f]{8}")


def further_path(path: Path, number: int) -> Path:
    """Return where the file *number*, from 1 on, behind the first one in *path* lies."""
    return path.with_name(f"{path.stem}.strings-{number}{path.suffix}")


def meta_with(meta: Meta, checksums: Sequence[int]) -> tuple[tuple[bytes, bytes], ...]:
    """Return *meta*, sorted, as the first file has it that others with these *checksums* follow."""
    said = [(FURTHER, b" ".join(b"%08x" % each for each in checksums))] if checksums else []
    return tuple(sorted((*meta_without(meta), *said)))


def meta_without(meta: Meta) -> tuple[tuple[bytes, bytes], ...]:
    """Return what *meta* says of the partition, and not of its files."""
    return tuple(pair for pair in meta if pair[0] != FURTHER)


def checksums_in(meta: Meta) -> tuple[int, ...]:
    """Return what *meta*, of a first file, says of the others; Malformed where that cannot be read."""
    said = dict(meta).get(FURTHER)
    each = () if said is None else said.split(b" ")
    if not all(map(_EACH.fullmatch, each)):
        raise Malformed(f"what it says of further files cannot be read: {said!r:.80}")
    return tuple(int(digits, 16) for digits in each)
