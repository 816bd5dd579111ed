"""Rows as tuples and octets: what is done by a shorter way gives what the longer one does."""

from __future__ import annotations

import pytest

from amicrawl.meguri.format.schema import ROW, packing_of
from amicrawl.meguri.rows import HostRow, UrlRow, priority_and_reference

URL_ROW = UrlRow(*range(1, 24))
HOST_ROW = HostRow._make((*range(1, 5), bytes(range(16)), *range(6, 21)))


def test_one_field_is_replaced_and_no_other() -> None:
    assert URL_ROW.with_status(200) == URL_ROW._replace(status=200)
    assert URL_ROW.with_reference(200) == URL_ROW._replace(url_ref=200)
    assert HOST_ROW.changed(url_count=200, flags=3) == HOST_ROW._replace(url_count=200, flags=3)


@pytest.mark.parametrize("priority", [0.0, -0.5, 3.0, 2.0**100, float("inf")])
@pytest.mark.parametrize("reference", [0, 1, 2**64 - 1])
def test_priority_and_reference_are_read_without_the_rest(priority: float, reference: int) -> None:
    row = URL_ROW._replace(priority=priority, url_ref=reference)
    octets = row.packed()
    assert UrlRow._make(packing_of(ROW).unpack(octets)) == row
    assert priority_and_reference(octets) == (priority, reference)
