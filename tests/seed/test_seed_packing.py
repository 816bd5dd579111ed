"""Packed lists: whole, in several members, cut and damaged."""

from __future__ import annotations

import gzip
import io
import struct
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.errors import InputError
from amicrawl.seed import open_seed
from amicrawl.seed.sitemap_tree import SitemapLimits
from amicrawl.seed.source import Packing, packing_of, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.seed import Seed, SeedFault

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]

LINES = b"".join(b"http://host-%d.example/page\n" % (number * 7919) for number in range(50_000))
SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"notes"


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def unpack(packed: bytes, *, block: int = 1000) -> bytes:
    packing = packing_of(packed)
    assert packing is not None
    blocks = (packed[start : start + block] for start in range(0, len(packed), block))
    return b"".join(unpacked(blocks, packing, name="seeds"))


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(LINES[:5000]) + gzip.compress(LINES[5000:9000]),
        gzip.compress(LINES[:9000]) + bytes(300),
        zstd(LINES[:5000]) + zstd(LINES[5000:9000]),
        SKIPPABLE + zstd(LINES[:9000]) + SKIPPABLE,
        zstd(b"") + zstd(LINES[:9000]),
    ],
    ids=["two-members", "padded-member", "two-frames", "skippable-frames", "empty-frame"],
)
def test_members_and_frames_in_a_row_are_one_stream(packed: bytes, block: int) -> None:
    assert unpack(packed, block=block) == LINES[:9000]


@given(st.lists(st.binary(max_size=400), min_size=1, max_size=4), st.integers(1, 50))
def test_what_was_packed_is_unpacked(contents: list[bytes], block: int) -> None:
    for pack in (gzip.compress, zstd):
        assert unpack(b"".join(map(pack, contents)), block=block) == b"".join(contents)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_every_cut_is_noticed(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(LINES[:3000])
    for cut in range(12, len(packed)):
        with pytest.raises(InputError, match=r"seeds is cut: it ends inside its (gzip|zstd) data"):
            unpack(packed[:cut])


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_flipped_bit_in_the_checksum_is_noticed(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(LINES[:3000]))
    packed[-6 if pack is gzip.compress else -1] ^= 1
    with pytest.raises(InputError, match="seeds is damaged"):
        unpack(bytes(packed))


@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, ".gz"), (zstd, ".zst")])
def test_of_a_cut_list_whole_lines_are_seeds_and_the_rest_one_fault(
    read: Read, pack: Callable[[bytes], bytes], suffix: str
) -> None:
    packed = pack(LINES)
    seeds, faults = read(packed[: len(packed) * 2 // 3], "seeds.txt" + suffix)
    urls = [seed.url for seed in seeds]
    assert 10_000 < len(urls) < 50_000
    assert urls == LINES.decode().split()[: len(urls)]
    assert [(fault.line, fault.kept) for fault in faults] == [(len(urls) + 1, False)]
    assert faults[0].reason.endswith(
        f"seeds.txt{suffix} is cut: it ends inside its "
        f"{'gzip' if suffix == '.gz' else 'zstd'} data. Get a complete copy."
    )


def test_a_reader_knows_whether_the_list_was_cut_and_not_what_its_sitemaps_name(tmp_path: Path) -> None:
    """A sitemap of the web that is not whole, or too long, is no reason to get another list."""
    index = b"<sitemapindex><sitemap><loc>http://a.test/s.xml</loc></sitemap></sitemapindex>"
    urls = b"".join(b"<url><loc>http://a.test/%d</loc></url>" % number for number in range(9))
    content = {
        "lines.txt.gz": gzip.compress(LINES)[:20_000],
        "sitemap.xml": b"<urlset>" + urls,
        "whole.xml": b"<urlset>" + urls + b"</urlset>",
        "index.xml": index,
        "long.xml": b"<urlset>" + urls + b" " * 2000 + b"</urlset>",
    }
    cut = {}
    for name, packed in content.items():
        (tmp_path / name).write_bytes(packed)
        with open_seed(
            str(tmp_path / name),
            on_fault=lambda _: None,
            fetch=lambda _: io.BytesIO(gzip.compress(b"http://a.test/1\n" * 9)[:-9]),
            limits=SitemapLimits(size=1500),
        ) as reader:
            assert [*reader]
            cut[name] = reader.cut is not None
    assert cut == {name: name in {"lines.txt.gz", "sitemap.xml"} for name in content}


@pytest.mark.parametrize(
    "packed", [gzip.compress(LINES[:9000])[:25], zstd(LINES)[:25], gzip.compress(LINES[:9000])[:12]]
)
def test_a_cut_list_that_gives_nothing_is_an_error(read: Read, packed: bytes) -> None:
    with pytest.raises(InputError, match=r"seeds\.txt is cut: it ends inside its"):
        read(packed)


def test_a_list_that_is_packed_twice_is_refused(read: Read) -> None:
    with pytest.raises(InputError, match=r"is packed twice\. Unpack it once"):
        read(gzip.compress(zstd(LINES)))


@pytest.mark.slow
@pytest.mark.parametrize("packing", list(Packing))
def test_a_bomb_comes_out_in_blocks_that_fit_the_memory(packing: Packing) -> None:
    zeros = bytes(1 << 26)
    bomb = gzip.compress(zeros, 9) if packing is Packing.GZIP else zstd(zeros)
    sizes = [len(block) for block in unpacked([bomb], packing, name="bomb")]
    assert sum(sizes) == len(zeros)
    assert max(sizes) <= 16 * 1024**2 + 256 * 1024
