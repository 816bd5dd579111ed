"""Notes in the journal of how many rows the index has, and the rows changed since each note.

A capture is in the index before its row is settled, and a crash may lose either. A note gives the number
of rows in the index at a moment. Settling follows within seconds, so that all rows counted by a note of
some seconds ago are settled; only later ones are looked up after a crash. Rows are counted, and not
seconds, since clocks may be set back.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from amicrawl.frontier.arena import entry_of
from amicrawl.frontier.format.strings import ANNEX_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTES_BACK: Final = 5
"""Notes, one a second, within which the row of a capture in the index is settled."""
_BEGIN: Final = ANNEX_MARK + b'{"rows":'
_ALL_KNOWN: Final = b',"all":1}'


def index_note(rows: int, *, all_known: bool) -> bytes:
    """Return the arena entry that says that the index has *rows*; no reference leads to it.

    With *all_known*, every one of them is settled already.
    """
    return entry_of(_BEGIN + b"%d" % rows + (_ALL_KNOWN if all_known else b"}"))


class ChangedRows:
    """The rows that journals changed, in the order of the changes, and the notes in between."""

    def __init__(self) -> None:
        self.numbers = array("I")
        self._notes: list[tuple[int, int]] = []
        """Rows of the index, and how many changes came before."""

    def __len__(self) -> int:
        return len(self.numbers)

    def clear(self) -> None:
        """Forget all of it."""
        del self.numbers[:], self._notes[:]

    def forget_notes(self) -> None:
        """Have everything looked up: changes between the notes are lost."""
        del self._notes[:]

    def note(self, entries: bytes) -> None:
        """Take *entries*, which were added to the arena, as a note if they are one."""
        if not entries.startswith(_BEGIN, 1):
            return
        said = entries[1 + len(_BEGIN) :]
        text, all_known = said.removesuffix(_ALL_KNOWN), said.endswith(_ALL_KNOWN)
        text = text.removesuffix(b"}")
        if not text.isdigit() or len(text) > 17:
            return
        note = int(text), len(self.numbers)
        # As many as `since` goes back: from then on every row before this note is known.
        self._notes += [note] * (NOTES_BACK + 1 if all_known else 1)

    def since(self, rows: int, known: int) -> tuple[int, Iterable[int]]:
        """Return how many rows of the index need no look, and the rows of the frontier changed since.

        *rows* are in the index: notes of more were written before a power cut took some. *known*
        is the number noted in the snapshot before the journals.
        """
        notes = [(noted, at) for noted, at in self._notes if noted <= rows]
        if len(notes) <= NOTES_BACK:
            return min(known, rows), self.since_begin()
        noted, at = notes[-1 - NOTES_BACK]
        return noted, set(self.numbers[at:])

    def since_begin(self) -> set[int]:
        """Return all rows that were changed."""
        return set(self.numbers)
