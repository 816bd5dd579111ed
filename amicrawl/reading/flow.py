"""Records found in a stream of decompressed pieces.

The common case, one whole record in a piece of its own, takes a short cut (`_at_a_glance`). Everything
else goes through a buffer: files that are not packed, records larger than a piece, several in one gzip
member, and what is damaged. There, a block is taken at its declared length only if something follows
that may: line ends and the next record, or the end. Where the length leads elsewhere, the record ends
where the next one is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amicrawl.message import end_of_head, unfinished_blank_line
from amicrawl.reading.framing import (
    ARC_LINE_LIMIT,
    HEAD_LIMIT,
    USUAL_HEAD,
    WARC_BEGIN,
    RecordHead,
    arc_head,
    arc_version,
    begins_arc,
    next_arc,
    next_warc,
    warc_head,
)
from amicrawl.reading.piece_buffer import LINE_ENDS, PieceBuffer

if TYPE_CHECKING:
    import hashlib
    import re
    from collections.abc import Callable, Iterator

    from amicrawl.reading.unpacking import Piece

MOST_FAULTS = 1000
"""Faults of a file after which the rest of it is left: a file made to waste time has many more."""

MOST_SOUGHT = 64 << 20
"""Bytes of a packed file, unpacked, in which the next record is looked for everywhere."""

_OVERLAP = 9 * 1024
"""Bytes that are kept while the next record is looked for: the line it begins with may be cut."""
_LONGEST_BLANK = 4 << 10
"""Bytes of a line of nothing but CRs, which is looked through again with each piece."""
_PEEKED = 1024
"""Bytes that are read to decide whether a record follows."""
_NOT_ONE_A_UNIT = (
    "records cannot be sought, as they are not packed one by one; "
    "pack the file again, one gzip member a record"
)


class FoundRecord(NamedTuple):
    """A record, and where it lies."""

    offset: int
    length: int
    head: bytes
    """The header, as it is written."""
    version: str
    """Empty where it is still to be read from the header, as `fields` are None."""
    fields: dict[str, str] | None
    data: bytes
    """Where the block is in, up to the cap."""
    start: int
    """Where in it the block begins."""
    block_length: int
    whole: bool = True
    seekable: bool = True
    body_sha1: bytes = b""
    """SHA-1 of the body where the block is cut and it was requested."""
    usual: re.Match[bytes] | None = None
    """What `USUAL_HEAD` found in the header, where `fields` are None."""


def found_records(
    pieces: Iterator[Piece],
    *,
    peek: Callable[[int, int], bytes] | None,
    broken: Callable[[int, str], None],
    block_cap: int,
    begin_digest: Callable[[FoundRecord], hashlib._Hash | None] = lambda _: None,
) -> Iterator[FoundRecord]:
    """Yield the records in *pieces*; what is not one, or not whole, goes to *broken* with its offset.

    Of a file that is not packed, *peek* returns the bytes at an offset, as many as are requested if
    there are; None says that the file is packed. *begin_digest* is given a record whose block is cut,
    and returns what the rest of the block is to be added to.
    """
    reader = _FlowReader(
        pieces, peek=peek, broken=broken, block_cap=block_cap, begin_digest=begin_digest
    )
    return reader.records()


class _FlowReader(PieceBuffer):
    """Reads on from piece to piece."""

    def __init__(
        self,
        pieces: Iterator[Piece],
        *,
        peek: Callable[[int, int], bytes] | None,
        broken: Callable[[int, str], None],
        block_cap: int,
        begin_digest: Callable[[FoundRecord], hashlib._Hash | None],
    ) -> None:
        super().__init__(pieces, packed=peek is None)
        self._peek = peek or (lambda _offset, _count: b"")
        self._broken = broken
        self._cap = block_cap
        self._begin_digest = begin_digest
        self._digest: hashlib._Hash | None = None
        self._arc = 0
        """The version of ARC that the file is in; 0 while it has not shown to be ARC."""
        self._warc = False
        """Whether a header of a WARC record was read in the buffer."""
        self._faults = 0
        self._reported: set[str] = set()
        self._kept: bytes | None = None
        """The beginning of a block of which the rest has been passed over."""
        self._is_unclosed = False
        """Whether something else than two CRLF stands behind the block."""

    def records(self) -> Iterator[FoundRecord]:
        for piece in self._pieces:
            if piece.end >= 0 and (found := self._at_a_glance(piece)) is not None:
                yield found
                continue
            self._take(piece)
            yield from self._from_buffer()
            if self._fault is not None:
                # A filling takes nothing from a record that was read to its end.
                is_harmless = self._fault.end >= 0 and self._at >= self._end()
                report = self._report_once if is_harmless else self._report
                report(self._fault.offset, self._fault.fault)
            self._clear()
            if self._faults > MOST_FAULTS:
                self._broken(piece.offset, f"has more than {MOST_FAULTS} faults; the rest is not read")
                return

    def _at_a_glance(self, piece: Piece) -> FoundRecord | None:
        """Return the record that *piece* is; None where it is more, less, or odd in any way."""
        offset, data, end, _ = piece
        if not data.endswith(b"\r\n\r\n"):
            return None
        fields = None
        usual = USUAL_HEAD.match(data)
        if usual is not None and usual["length"] is not None:
            start, length = usual.end(), int(usual["length"])
        else:
            start = data.find(b"\r\n\r\n") + 4
            head = warc_head(data[:start]) if start <= HEAD_LIMIT else None
            if head is None or head.strange:
                return None
            length, fields, usual = head.length, head.fields, None
        if length < 0 or start + length + 4 != len(data) or length > self._cap:
            return None
        return FoundRecord(
            offset, end - offset, data[:start], "", fields, data, start, length, usual=usual
        )

    def _report(self, offset: int, reason: str) -> None:
        self._faults += 1
        if self._faults <= MOST_FAULTS:
            self._broken(offset, reason)

    def _report_once(self, offset: int, reason: str) -> None:
        """Report a kind of oddity, the first time in the file."""
        if reason not in self._reported:
            self._reported.add(reason)
            self._broken(offset, reason)

    def _from_buffer(self) -> Iterator[FoundRecord]:
        """Yield the records from here on, until the flow ends or continues with a unit of its own."""
        while self._pass_line_ends():
            if self._faults > MOST_FAULTS:
                return
            start = self._at
            head, block_start = self._head(start)
            if head is None:
                if self._fault is None:
                    begun = self._bytes(start, start + 5).upper() == b"WARC/"
                    reason = "the header of a record is cut" if begun else "no record begins here"
                    self._report(self._offset(start), reason)
                found_next = self._next_record(start + 1)
                if found_next is None:
                    return
                self._at = found_next
                continue
            found = self._record(head, start, block_start)
            if found is None:
                return
            yield found
            self._drop(self._at)

    def _head(self, start: int) -> tuple[RecordHead | None, int]:
        """Return the header that begins at *start*, and where the block does."""
        self._have(start + 5)
        begin = self._bytes(start, start + 16)
        if begin[:5].upper() == b"WARC/":
            searched = start
            while (end := end_of_head(self._data, self._index(searched))) is None:
                searched = max(start, self._base + unfinished_blank_line(self._data))
                too_long = self._end() - start > HEAD_LIMIT or self._end() - searched > _LONGEST_BLANK
                if too_long or not self._more():
                    return None, start
            end += self._base
            self._warc = True
            return warc_head(self._bytes(start, end)), end
        if not begins_arc(begin):
            return None, start
        while (line_end := self._data.find(b"\n", self._index(start))) < 0:
            if self._end() - start > ARC_LINE_LIMIT or not self._more():
                return None, start
        end = self._base + line_end + 1
        head = arc_head(self._bytes(start, end), major=self._arc or 1)
        if head is not None and not self._arc:
            self._have(end + 1)
            self._arc = (
                arc_version(self._bytes(end, end + 1))
                if "filedesc:" in head.fields["warc-target-uri"]
                else 1
            )
        return head, end

    def _record(self, head: RecordHead, start: int, block_start: int) -> FoundRecord | None:
        """Return the record whose header has been read, and go behind it; None where it is not whole."""
        offset = self._offset(start)
        raw = self._bytes(start, block_start)
        self._kept = self._digest = None
        self._is_unclosed = False
        found = FoundRecord(offset, 0, raw, head.version, head.fields, b"", 0, head.length)
        end = self._declared_end(block_start, found) if head.length >= 0 else None
        whole = end is not None
        if end is None:
            end = self._true_end(block_start)
            if end is None:
                return None
            self._report(
                offset,
                "the Content-Length of a record is wrong: the next record, or the end, is elsewhere",
            )
        block = (
            self._kept
            if self._kept is not None
            else self._bytes(block_start, min(end, block_start + self._cap))
        )
        found = found._replace(
            length=end - start,
            data=block,
            block_length=end - block_start,
            whole=whole,
            body_sha1=self._digest.digest() if whole and self._digest is not None else b"",
        )
        located = self._located(found, start, end) if self._packed else found
        if located is not None:
            self._report_oddities(head, offset, end)
        return located

    def _report_oddities(self, head: RecordHead, offset: int, end: int) -> None:
        """Report what a strict reader would refuse of a record that is kept; its block ends at *end*."""
        if head.strange:
            self._report_once(offset, f"a record is strange, and was read nevertheless: {head.strange}")
        if self._is_unclosed:
            self._report_once(
                self._offset(end - 1), "a record does not end in two CRLF, and was read nevertheless"
            )

    def _declared_end(self, block_start: int, found: FoundRecord) -> int | None:
        """Go to the block's declared end and return it; None where what follows there may not."""
        length = found.block_length
        end = block_start + length
        if (
            not self._packed
            and end > self._end()
            and not self._may_follow(self._peek(end, _PEEKED), ended=True)
        ):
            return None
        if length > self._cap:
            if not self._reach(block_start + self._cap):
                return None
            self._kept = self._bytes(block_start, block_start + self._cap)
            self._drop(block_start + self._cap)
            self._digest = self._begin_digest(found._replace(data=self._kept))
        if not self._reach(end, passing=length > self._cap):
            return None
        self._at = end
        if self._have(end + 4) and self._bytes(end, end + 4) == b"\r\n\r\n":
            self._at = end + 4
            return end
        in_unit = self._pass_line_ends()
        closed = self._bytes(end, self._at)
        if in_unit and not self._begins_at(self._at) and not self._unit_begins(self._at):
            return None
        self._is_unclosed = not self._arc and closed != b"\r\n\r\n"
        return end

    def _reach(self, position: int, *, passing: bool = False) -> bool:
        """Read on to *position*; False where a unit begins with a record before, or the flow ends."""
        while self._end() < position:
            edge = self._end() if self._packed and self._unit_ended else -1
            if passing:
                if self._digest is not None:
                    self._digest.update(self._data)
                self._drop(max(self._base, self._end()))
            if not self._more():
                return False
            if edge >= 0 and self._begins_at(edge):
                return False
        if passing and self._digest is not None:
            self._digest.update(self._bytes(self._base, position))
        return True

    def _begins_at(self, position: int) -> bool:
        """Return whether a record's header begins at *position*."""
        self._have(position + _PEEKED)
        return self._may_follow(self._bytes(position, position + ARC_LINE_LIMIT), ended=False)

    def _may_follow(self, seen: bytes, *, ended: bool) -> bool:
        """Return whether what was *seen* may follow a record; where *ended*, nothing may, too."""
        rest = seen.lstrip(LINE_ENDS)
        if not rest:
            return ended
        if WARC_BEGIN.match(rest):
            return True
        if not self._arc:
            return False
        line, end, _ = rest.partition(b"\n")
        # A line that has no end is one that is cut: by the end of the file, or by that of what was seen.
        # Others are read as a header is, which takes more than a search among other bytes may.
        return not end or arc_head(line + end, major=self._arc) is not None

    def _true_end(self, block_start: int) -> int | None:
        """Find where a block ends whose declared end is none, and go to the next record, or the end.

        None where a fault cuts the flow first. Of a block that is longer than the cap, what has been
        passed over by then is not looked at again.
        """
        following = self._next_record(max(block_start, self._base), keep=True)
        if following is None:
            if self._fault is not None:
                return None
            self._at = self._end()
            return self._at
        self._at = following
        closing = b"\n" if self._arc else b"\r\n\r\n"
        closed = self._bytes(max(self._base, following - len(closing)), following) == closing
        return max(block_start, following - len(closing)) if closed else following

    def _next_record(self, start: int, *, keep: bool = False) -> int | None:
        """Return the position from *start* on where the next record begins; None where none does.

        Continues from unit to unit. The bytes before are forgotten; with *keep*, a cap of them is kept.
        """
        position = unlooked = start
        while True:
            # To look at the begin of one unit may bring further ones to hand, which are looked at next.
            end = self._end()
            # A frame of some kilobytes may stand for gigabytes: behind so much that is not a record, one
            # is looked for where a unit begins and nowhere else.
            is_lost = self._packed and end - start > MOST_SOUGHT
            found = None if is_lost else self._line_that_begins_one(position)
            edge = next((edge for edge in self._units_from(unlooked) if self._begins_at(edge)), None)
            if found is not None or edge is not None:
                return min(place for place in (found, edge) if place is not None)
            position, unlooked = max(position, end - _OVERLAP), end
            if keep and self._kept is None and self._end() - start > self._cap:
                self._kept = self._bytes(start, start + self._cap)
            if not keep or self._kept is not None:
                self._drop(max(self._base, position))
            if not self._more():
                return None

    def _line_that_begins_one(self, position: int) -> int | None:
        """Return the position, from *position* on, of a line in the data that a record begins with."""
        begins = [next_arc] if self._arc else [next_warc] if self._warc else [next_warc, next_arc]
        found = [begin(self._data, self._index(position)) for begin in begins]
        return min((self._base + index for index in found if index >= 0), default=None)

    def _located(self, found: FoundRecord, start: int, end: int) -> FoundRecord | None:
        """Return *found* with its place as its unit has it; None where the unit is damaged."""
        self._pass_line_ends()
        unit = next((unit for unit in reversed(self._units) if unit.start <= start), None)
        behind = next((place for place in sorted(self._ends) if end <= place <= self._at), None)
        begins = unit is not None and unit.start == start
        if behind is None and self._fault is not None and begins:
            return None
        one_unit = not any(start < place < end for place in self._ends)
        if begins and behind is not None and one_unit:
            return found._replace(length=self._ends[behind] - found.offset)
        self._report_once(found.offset, _NOT_ONE_A_UNIT)
        return found._replace(length=0, seekable=False)
