"""The seen-set: which URLs a partition knows, by key.

A filter answers first: "absent" is certain, "perhaps" is settled by an exact set, so that a false
positive costs a look-up and never a URL.

* `bloom.py`, `ribbon.py`: the two filters a frontier file may hold, to the bit as the format says;
  `read_filter` opens either. `growing.py` is the filter of a crawl that runs.
* `keyindex.py`: exact, in memory, for keys that came since the file was written; `runs.py`: exact, over
  the sorted keys of a file that is mapped.

Keys are pairs of unsigned 64-bit numbers, host half and path half: Python ints one at a time, arrays
of `uint64` in bulk. Nothing here touches the disk or settles races: one thread changes a set.
"""

from amicrawl.frontier.seen.bloom import BlockedBloom, Sizing, sizing, sound_sizing
from amicrawl.frontier.seen.filter import read_filter
from amicrawl.frontier.seen.growing import GrowingFilter, merged_blob
from amicrawl.frontier.seen.keyindex import KeyIndex
from amicrawl.frontier.seen.ribbon import Ribbon
from amicrawl.frontier.seen.runs import SortedKeys

__all__ = [
    "BlockedBloom",
    "GrowingFilter",
    "KeyIndex",
    "Ribbon",
    "Sizing",
    "SortedKeys",
    "merged_blob",
    "read_filter",
    "sizing",
    "sound_sizing",
]
