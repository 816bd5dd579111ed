"""Every damaged file is refused with an error that says where, of the class the reference gives it.

Where the reference reads a damaged file, or crashes over it, we refuse it all the same: the table below
says as what. The few that we read, as the reference does, are named with the reason.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from meguri.format.frontier_files import DAMAGED, same_partition

from amicrawl.meguri.format.faults import FileFault, FrontierFileError
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import inspect, partition_in, read_partition, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READ_LIKE_THE_REFERENCE = {
    "069": "a later minor version may add only what readers skip",
    "141": "footer sections with unknown tags are skipped by their length",
}

REFUSED_BY_VERIFY_ALONE = {
    "151": "the format allows a key to come twice, and golden files have that; a frontier's never do",
}

CORRUPT_WHERE_THE_REFERENCE_IS_LENIENT = frozenset(
    """073 075 078 081 085 086 094 098 099 110 111 114 121 122 123 124 125 130 131 132 133 134 135 137
    138 139 140 146 147 148 152 153 154""".split()  # noqa: SIM905
)
"""It ignores flags, kinds, counts, sums, zones, schedules, bytes left over and bytes missing."""

UNSUPPORTED_WHERE_THE_REFERENCE_IS_LENIENT = frozenset(("070", "071", "072", "074"))
"""It ignores which checksum, codec and flags the header names."""

NOT_SORTED_WHERE_THE_REFERENCE_IS_LENIENT = frozenset(("150", "151"))
"""It looks at the order of URL rows only, and lets keys come twice."""


def damaged(directory: Path) -> list[tuple[Path, dict[str, Any]]]:
    listing = directory / "damaged.jsonl"
    lines = map(json.loads, listing.read_text().splitlines())
    return [(directory / line["file"], line) for line in lines if line["class"] != "manifest"]


CASES = damaged(DAMAGED)
IDS = [line["file"].removesuffix(".meguri") for _, line in CASES]


def expected_fault(line: dict[str, Any]) -> FileFault:
    number, found = line["file"][:3], line["error_class"]
    if number in UNSUPPORTED_WHERE_THE_REFERENCE_IS_LENIENT:
        assert found == "none"
        return FileFault.UNSUPPORTED
    if number in NOT_SORTED_WHERE_THE_REFERENCE_IS_LENIENT:
        assert found == "none"
        return FileFault.NOT_SORTED
    if number in CORRUPT_WHERE_THE_REFERENCE_IS_LENIENT:
        assert found == "none"
        return FileFault.CORRUPT
    # Where it crashes, a count or size was trusted that contradicts the rest of the file.
    return FileFault.CORRUPT if found == "crash" else FileFault(found)


@pytest.mark.parametrize(("path", "line"), CASES, ids=IDS)
def test_a_damaged_file_is_refused_for_what_is_wrong_with_it(path: Path, line: dict[str, Any]) -> None:
    number = line["file"][:3]
    if number in READ_LIKE_THE_REFERENCE:
        base = read_partition(path.with_name(f"base-{line['base']}.meguri"))
        with FrontierFile.open(path) as file:
            verify(file)
            assert same_partition(partition_in(file), base)
        return
    fault = expected_fault(line)
    with pytest.raises(FrontierFileError) as refused, FrontierFile.open(path) as file:
        verify(file)
    assert refused.value.fault == fault
    assert refused.value.path == path
    assert 0 <= refused.value.offset <= max(line["size"], 0)
    assert refused.value.region
    place = f"{path}, byte {refused.value.offset}: {refused.value.region}: "
    assert str(refused.value).startswith(place)
    if number not in REFUSED_BY_VERIFY_ALONE:
        with pytest.raises(FrontierFileError) as unread:
            read_partition(path)
        assert unread.value.fault == fault


@pytest.mark.parametrize(("path", "line"), CASES, ids=IDS)
def test_queries_on_a_damaged_file_are_right_or_refused(path: Path, line: dict[str, Any]) -> None:
    """A query that does not meet the damage may succeed; its result is what the sound file says."""
    with FrontierFile.open(DAMAGED / f"base-{line['base']}.meguri") as base:
        wanted = results(base)
    try:
        with FrontierFile.open(path) as file:
            found = results(file)
    except FrontierFileError:
        return
    rewritten = {"149", "150", "151"}  # other rows, whatever was queried
    if line["file"][:3] not in rewritten:
        assert all(result is None or result == wanted[name] for name, result in found.items())


def results(file: FrontierFile) -> dict[str, object]:
    """Return what the file returns for some queries, None for those it refuses."""
    queries: dict[str, Callable[[], object]] = {
        "keys": lambda: [file.url_column(name).tolist() for name in ("host_key", "path_key")],
        "due": lambda: file.due(0xFFFF_FFFF).tolist(),
    }
    found: dict[str, object] = {}
    for name, query in queries.items():
        try:
            found[name] = query()
        except FrontierFileError:
            found[name] = None
    return found


@pytest.mark.parametrize(("path", "line"), CASES, ids=IDS)
def test_the_summary_is_given_only_of_files_with_sound_ends(path: Path, line: dict[str, Any]) -> None:
    if line["inspect"] == "no error":
        try:
            inspect(path)
        except FrontierFileError as refused:
            # Header and footer contradict each other, which the reference does not look at.
            explained = line["checksums_repaired"] and refused.region in {"header", "footer"}
            if not explained:
                raise
    else:
        with pytest.raises(FrontierFileError):
            inspect(path)
