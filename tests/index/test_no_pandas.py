"""What goes through millions of lines does not wait for pandas to be loaded, where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LINE = 'org,a)/{n} 20121026215942 {{"url": "http://a.org/{n}", "status": "200", "offset": "{n}"}}\n'
_SIDE = 'org,a)/{n} 20121026215942 {{"Preservation-Identifier": "fmt/96", "Soft-404-Detected": 0.{n}}}\n'
_WORK = """
import sys
from pathlib import Path
from amicrawl.disk import Disk
from amicrawl.archive.index.merging.merge import MergeJob, merge_job
from amicrawl.archive.table import make_table

work = Path(sys.argv[1])
for held in (1000, 0):
    merge_job(MergeJob((work / "in.cdxj",), (work / "side.cdxj",), work / "out", sides_in_memory=held))
report = make_table([work / "out" / "in.cdxj"], work / "table", disk=Disk())
print(report.rows, "pandas" in sys.modules)
"""


def test_merging_and_making_a_table_load_no_pandas(tmp_path: Path) -> None:
    dns = 'dns:a.org 20121026215942 {"url": "dns:a.org", "offset": "7"}\n'
    numbers = range(9, 1, -1)
    (tmp_path / "in.cdxj").write_text("".join([*[_LINE.format(n=n) for n in numbers], dns]))
    other = 'org,a)/0 20121026215942 {"Preservation-Identifier": "fmt/97"}\n'
    odd = 'org,a)/0 20121026215942 {"Preservation-Identifier": "fmt\\/97"}\n'
    sides = [_SIDE.format(n=n) for n in numbers if n % 4]
    (tmp_path / "side.cdxj").write_text("".join([*sides, other, odd]))
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _WORK, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.split() == ["9", "False"]
    merged = (tmp_path / "out" / "in.cdxj").read_text().splitlines()
    fields = [json.loads(line.split(" ", 2)[2]) for line in merged]
    assert fields[0] == {
        "url": "http://a.org/9",
        "status": "200",
        "offset": "9",
        "puid": "fmt/96",
        "soft-404-detected": 0.9,
    }
    assert fields[1] == {"url": "http://a.org/8", "status": "200", "offset": "8"}
