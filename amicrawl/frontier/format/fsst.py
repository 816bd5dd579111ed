"""FSST: strings that are much alike, compressed one by one with a common table of symbols.

    table   uvarint symbols, then for each: u8 length, 1 to 8 octets
    spans   00 | uvarint codes, codes | uvarint codes, codes | ...

A code below 255 is a symbol by its rank, 255 an escape: the octet behind it stands for itself. Strings
are told by the offset of their span. The same strings always give the same octets: the table is trained
by rules that leave no choice. What is read is taken apart only if it is just what a writer makes, so
that a string is never a guess, and what comes out is no more than eight times what went in. The method
is that of Boncz, Neumann and Leis (2020).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from heapq import nsmallest
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.varints import read_uvarint, write_uvarint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_SYMBOLS: Final = 255
LONGEST_SYMBOL: Final = 8

_ESCAPE: Final = 255
_ROUNDS: Final = 8
_CUT_SHORT: Final = "string arena is cut short"


class PackedStrings(NamedTuple):
    """Some strings in their order: where each begins, the table, the spans."""

    references: list[int]
    table: bytes
    spans: bytes


class SymbolTable:
    """Up to 255 symbols of one to eight octets, none of them twice; the code of a symbol is its rank."""

    def __init__(self, symbols: Sequence[bytes]) -> None:
        self.symbols = tuple(symbols)

    def encode(self, text: bytes) -> bytes:
        """Return the codes of *text*: from left to right always the longest symbol that fits."""
        return b"".join(map(self._codes.__getitem__, self._pattern.findall(text)))

    def decode(self, codes: bytes, *, at: int = 0) -> bytes:
        """Return the text of *codes*, which begin at *at* of what is read; Malformed if one is none."""
        symbols = self.symbols
        text = bytearray()
        place = 0
        for part, octet in _PARTS.findall(codes):
            if octet:
                text += octet[1:]
            elif not part or max(part) >= len(symbols):
                raise Malformed("a code without a symbol, or an escape without an octet", at=at + place)
            else:
                text += b"".join([symbols[code] for code in part])
            place += len(part) + len(octet)
        return bytes(text)

    def to_bytes(self) -> bytes:
        """Return the table as it is written."""
        parts = [bytes((len(symbol),)) + symbol for symbol in self.symbols]
        return write_uvarint(len(parts)) + b"".join(parts)

    @classmethod
    def from_bytes(cls, table: bytes) -> SymbolTable:
        """Read a table; Malformed where it is none, or there is more behind it."""
        count, at = read_uvarint(table, 0)
        if count > MOST_SYMBOLS:
            raise Malformed(f"{count} symbols")
        symbols = []
        for _ in range(count):
            length = table[at] if at < len(table) else 0
            symbol = table[at + 1 : at + 1 + length]
            if not 1 <= length <= LONGEST_SYMBOL or len(symbol) != length:
                raise Malformed("symbol table is cut short, or a symbol too long or empty", at=at)
            symbols.append(symbol)
            at += 1 + length
        if at != len(table):
            raise Malformed("more behind the symbol table", at=at)
        if len(set(symbols)) != count:
            raise Malformed("a symbol twice")
        return cls(symbols)

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return _longest_first(self.symbols)

    @cached_property
    def _codes(self) -> dict[bytes, bytes]:
        """The codes of every symbol, and of every single octet."""
        escaped = {bytes((octet,)): bytes((_ESCAPE, octet)) for octet in range(256)}
        return escaped | {symbol: bytes((code,)) for code, symbol in enumerate(self.symbols)}


_PARTS: Final = re.compile(rb"([^\xff]+)|(\xff(?s:.))|\xff")
"""Codes of symbols; an escape and its octet; an escape that nothing follows."""


def train(strings: Sequence[bytes]) -> SymbolTable:
    """Return the table for *strings*.

    Eight times the strings are cut up by the table there is, single octets to begin with. Every piece,
    and every two in a row that together have eight octets at most, is worth its length each time it
    occurs; the 255 that are worth most, the lesser octets first among equals, are the next table.
    """
    symbols: tuple[bytes, ...] = ()
    for _ in range(_ROUNDS):
        pattern = _longest_first(symbols)
        pieces: Counter[bytes] = Counter()
        pairs: Counter[tuple[bytes, bytes]] = Counter()
        for string in strings:
            cut = pattern.findall(string)
            pieces.update(cut)
            pairs.update(pairwise(cut))
        for (left, right), times in pairs.items():
            if len(left) + len(right) <= LONGEST_SYMBOL:
                pieces[left + right] += times
        worth = ((-len(piece) * times, piece) for piece, times in pieces.items())
        symbols = tuple(piece for _, piece in nsmallest(MOST_SYMBOLS, worth))
    return SymbolTable(symbols)


def pack(strings: Sequence[bytes]) -> PackedStrings:
    """Return *strings* packed with a table of their own; equal ones are not written once for all."""
    table = train(strings)
    spans = bytearray(1)
    references = []
    for string in strings:
        references.append(len(spans))
        codes = table.encode(string)
        spans += write_uvarint(len(codes))
        spans += codes
    return PackedStrings(references, table.to_bytes(), bytes(spans))


def unpack(packed: PackedStrings) -> list[bytes]:
    """Return the strings; Malformed unless the spans are one behind the other, just as referred to."""
    table = SymbolTable.from_bytes(packed.table)
    spans = packed.spans
    if spans[:1] != b"\0":
        raise Malformed("string arena that does not begin with 00")
    at = 1
    strings = []
    for reference in packed.references:
        if reference != at:
            raise Malformed("string reference to where no string begins", at=at)
        length, begin = read_uvarint(spans, at)
        at = begin + length
        if at > len(spans):
            raise Malformed(_CUT_SHORT, at=begin)
        strings.append(table.decode(spans[begin:at], at=begin))
    if at != len(spans):
        raise Malformed("more behind the last string", at=at)
    return strings


def _longest_first(symbols: Iterable[bytes]) -> re.Pattern[bytes]:
    """Return what finds the longest of *symbols* that fits, or else one octet."""
    by_first: dict[bytes, list[bytes]] = {}
    for symbol in sorted(symbols, key=len, reverse=True):
        by_first.setdefault(symbol[:1], []).append(re.escape(symbol[1:]))
    branches = [
        re.escape(first) + (b"(?:%s)" % b"|".join(rests) if len(rests) > 1 else rests[0])
        for first, rests in by_first.items()
    ]
    return re.compile(b"|".join([*branches, b"."]), re.DOTALL)
