"""The seen-set: which URLs a partition knows, by key.

A filter is asked first: "absent" is certain, "perhaps" is decided by an exact set, so that a false
positive costs a look-up and never a URL.

* `bloom.py`: the filter that a frontier file holds, to the bit as the format says.
* `keyindex.py`: exact, in memory, for keys that came since the file was written.
* `sorted_keys.py`: exact, over the sorted keys of a mapped file.

Keys are pairs of unsigned 64-bit numbers, host half and path half: Python ints one at a time, arrays
of `uint64` in bulk. Nothing here touches the disk; one thread changes a set.
"""
