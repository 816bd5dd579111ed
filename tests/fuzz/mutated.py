"""Sound inputs with changes made to them, for hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

_ODD = (
    *(b"", b"\0", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b":", b";", b"-1", b"0", b"ffffffff"),
    *(
        b"99999999999999999999",
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"{",
        b"[",
        b'"',
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(b"1e999", b"NaN", b"null", b"\\u0000", b"\\ud800", b"chunked", b"Content-Length: 7\r\n"),
)


def mutated(begins: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return inputs: some of *begins* joined, with pieces cut out, put in, replaced and doubled."""
    pieces = st.one_of(st.sampled_from(_ODD), st.binary(max_size=12))
    change = st.tuples(st.integers(0, 1 << 12), st.integers(0, 8), pieces, st.booleans())

    def applied(bases: list[bytes], changes: list[tuple[int, int, bytes, bool]]) -> bytes:
        octets = b"".join(bases)
        for where, length, piece, doubles in changes:
            at = where % (len(octets) + 1)
            octets = octets[:at] + piece * (1 + 3 * doubles) + octets[at + length :]
        return octets

    some = st.lists(st.sampled_from(list(begins)), min_size=1, max_size=3)
    return st.one_of(st.builds(applied, some, st.lists(change, max_size=6)), st.binary(max_size=200))
