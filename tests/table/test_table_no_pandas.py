"""A line that is read by itself does not make the table wait for pandas, where it is installed."""

from __future__ import annotations

import subprocess
import sys

_WORK = r"""
import sys
from amicrawl.archive.table import CCINDEX
from amicrawl.archive.table.block_rows import rows_of_block

plain = b'org,a)/%d 20121026215942 {"url": "http://a.org/", "recordid": "%032x", "status": "200"}\n'
odd = b'org,a)/\xc3\xa9 20121026215942 {"url": "http://a.org/\\u00e9", "status": 404, "offset": "7"}\n'
found = rows_of_block(plain % (1, 1) + odd + plain % (2, 2), CCINDEX).rows
print(found["fetch_status"].to_pylist(), found["warc_record_id"].null_count, "pandas" in sys.modules)
"""


def test_odd_lines_and_record_ids_load_no_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", _WORK], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "[200, 404, 200] 1 False\n"
