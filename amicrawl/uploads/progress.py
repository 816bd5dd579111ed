"""How far an upload is, in the words of a status line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.listing import SealedFile


class UploadProgress:
    """How far the upload of some files is. One thread uploads, any may read."""

    def __init__(self, files: Iterable[SealedFile]) -> None:
        sizes = {file.name: file.size for file in files}
        self._left = sizes
        self._files, self._total = len(sizes), 2 * sum(sizes.values())
        self._done = self._current = 0

    def moved(self, size: int) -> None:
        """Count *size* bytes that were sent, or read back: each of a file is both."""
        self._current += size

    def begin(self) -> None:
        """Begin a file, or begin one again."""
        self._current = 0

    def end(self, file: SealedFile) -> None:
        """Count *file*, which is in the bucket now."""
        self._done, self._current = self._done + 2 * self._left.pop(file.name, 0), 0

    def __str__(self) -> str:
        """Return it as people read it: `uploading 3 of 7, 41 %`; `listed` once all are in the bucket."""
        if not self._left:
            return "listed"
        share = 100 * (self._done + self._current) // self._total if self._total else 0
        return f"uploading {self._files - len(self._left) + 1} of {self._files}, {min(share, 99)} %"
