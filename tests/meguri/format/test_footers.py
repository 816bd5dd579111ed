"""Footers that are whole, and contradict themselves or the rows: each in one way only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from meguri.format.frontier_files import encode_partition, made_up

from amicrawl.meguri.format.faults import FrontierFileError, Malformed
from amicrawl.meguri.format.layout import check_footer
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import verify
from amicrawl.meguri.format.writer import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Iterator[FrontierFile]:
    """A file without a schedule, which would give the least time away."""
    path = tmp_path / "file.meguri"
    path.write_bytes(encode_partition(made_up(50, 5), WriteOptions()))
    with FrontierFile.open(path) as found:
        yield found


@pytest.mark.parametrize(
    "ids",
    [(0, 2, 3, 4), (1, 0, 2, 4), (0, 1, 4, 2), (0, 1, 2, 2), (0, 1, 2, 7), (0, 1, 1, 2)],
    ids=["no host table", "tables", "others", "twice", "unknown", "host table twice"],
)
def test_regions_that_the_format_does_not_have_are_refused(
    file: FrontierFile, ids: tuple[int, ...]
) -> None:
    first = file.footer.regions[0]
    # Of no length but the first, so that all lie end to end.
    regions = (
        first._replace(id=ids[0], length=file.header.footer_offset - first.offset),
        *(first._replace(id=each, offset=file.header.footer_offset, length=0) for each in ids[1:]),
    )
    with pytest.raises(Malformed, match=r"the regions are \["):
        check_footer(replace(file.footer, regions=regions), file.header)


def test_the_columns_of_hosts_are_held_to_their_own_table(file: FrontierFile) -> None:
    footer, header = file.footer, file.header
    check_footer(footer, header)
    with pytest.raises(Malformed, match=r"the columns of host_table are \["):
        check_footer(replace(footer, host_columns=footer.host_columns[:-1]), header)
    with pytest.raises(Malformed, match=r"host_table\.host_key: rows is 5 instead of 6"):
        check_footer(footer, replace(header, host_rows=6))
    columns = tuple(replace(each, codec=each.codec ^ 1) for each in footer.host_columns)
    with pytest.raises(Malformed, match=r"host_table\.host_key: codec is"):
        check_footer(replace(footer, host_columns=columns), header)
    first, second, *others = footer.regions
    moved = first._replace(length=first.length - 1), second._replace(offset=second.offset - 1)
    moved = moved[0], moved[1]._replace(length=second.length + 1)
    with pytest.raises(Malformed, match=r"the pages of host_table begin at byte|up to the next column"):
        check_footer(replace(footer, regions=(*moved, *others)), header)


@pytest.mark.parametrize("change", [{"due_min": 1}, {"due_max": -1}])
def test_times_of_which_the_directory_knows_nothing_are_held_to_the_rows(
    file: FrontierFile, change: dict[str, int]
) -> None:
    """Where a row is not scheduled, the least value of the column is 0, and any least time may be."""
    assert (file.url_columns["next_due"].zone or (1, 1))[0] == 0
    verify(file)
    said = file.footer.statistics
    changed = said._replace(**{name: getattr(said, name) + by for name, by in change.items()})
    file.footer = replace(file.footer, statistics=changed)
    with pytest.raises(FrontierFileError, match="statistics: due from"):
        verify(file)
