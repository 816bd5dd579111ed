"""What pyarrow writes a Parquet file to: an output file of ours, so that no byte passes by its disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amicrawl.disk import OutputFile


class Sink:
    """The file that pyarrow writes to, until a write fails or the table is given up.

    pyarrow goes on writing then, from destructors too; nothing of that may reach the file, or raise.
    """

    closed = False

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self._given_up = False

    def write(self, block: bytes) -> int:
        """Write *block*."""
        if not self._given_up:
            self._given_up = True
            self._output.write(block)
            self._given_up = False
        return len(block)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._output.tell()

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the file is not pyarrow's to close."""

    def give_up(self) -> None:
        """Let nothing more through."""
        self._given_up = True
