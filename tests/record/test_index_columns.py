"""Columns of the index from Python values: as Arrow itself makes them, without what that loads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.record.table import column_of
from amicrawl.record.table_reader import CAPTURES

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): st.text(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.bool_(): st.booleans(),
}
_ALONE = """
import sys
import pyarrow as pa
from amicrawl.record.table import column_of

columns = {pa.string(): ["a", None], pa.int32(): [1, None], pa.bool_(): [True]}
print([len(column_of(values, kind)) for kind, values in columns.items()], "pandas" in sys.modules)
"""


@given(st.data())
def test_a_column_is_the_one_that_arrow_makes(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=20))
    made = column_of(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))
    assert made.null_count == values.count(None)


def test_every_column_of_the_index_has_a_kind_that_can_be_made() -> None:
    assert {field.type for field in CAPTURES} <= VALUES.keys()


@pytest.mark.parametrize(("value", "kind"), [(1 << 31, pa.int32()), (-(1 << 63) - 1, pa.int64())])
def test_a_number_out_of_range_is_refused(value: int, kind: pa.DataType) -> None:
    with pytest.raises(OverflowError):
        column_of([0, value], kind)


def test_a_text_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        column_of(["\udcff"], pa.string())


def test_columns_are_made_without_pandas() -> None:
    said = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, check=True)
    assert said.stdout == "[2, 2, 1] False\n"
