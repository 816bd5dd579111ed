"""Fuzzes the reader of frontier files with atheris, which steers the changes by the code they reach.

    python tests/fuzz/fuzz_frontier_file.py [-runs=100000] [-max_total_time=60] [corpus]

Two kinds of input: bytes taken for a whole file, and changes to a sound file whose checksums are put
right afterwards. Anything but rows or a FrontierFileError is a crash; more than 512 MB of memory too.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

try:
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError:
    sys.exit("atheris is missing: pip install atheris (on most platforms it needs clang too).")

with atheris.instrument_imports(include=["amicrawl"]):
    from frontier.format.frontier_files import made_up
    from frontier.format.mutations import read_all, sound

    from amicrawl.frontier.format.schema import Codec
    from amicrawl.frontier.format.writer import WriteOptions

SOUND = [
    sound(made_up(40, hosts=5), WriteOptions(codec, schedule=True, max_page_rows=rows))
    for codec in Codec
    for rows in (0, 13)
]
DIRECTORY = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())
PATH = DIRECTORY / f"fuzz-{os.getpid()}.meguri"


def read_one(octets: bytes) -> None:
    """Read what *octets* stand for."""
    given = atheris.FuzzedDataProvider(octets)
    if given.ConsumeIntInRange(0, 3) == 0:
        PATH.write_bytes(given.ConsumeBytes(1 << 20))
    else:
        base = SOUND[given.ConsumeIntInRange(0, len(SOUND) - 1)]
        changes = [
            (
                given.ConsumeIntInRange(0, len(base.octets) - 1),
                given.ConsumeBytes(given.ConsumeIntInRange(1, 9)),
            )
            for _ in range(given.ConsumeIntInRange(1, 6))
        ]
        PATH.write_bytes(base.changed(changes))
    read_all(PATH)


if __name__ == "__main__":
    atheris.Setup([*sys.argv, "-rss_limit_mb=512"], read_one)
    try:
        atheris.Fuzz()
    finally:
        PATH.unlink(missing_ok=True)
