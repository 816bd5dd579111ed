"""The order of rows: by host key, then path key, as unsigned numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.frontier.format.faults import Fault, Malformed

if TYPE_CHECKING:
    import numpy as np


class KeyOrder:
    """Checks the keys of a table page by page."""

    def __init__(self, table: str, *, equal_keys: bool) -> None:
        self._table = table
        self._equal_keys = equal_keys
        self._last: tuple[int, int] | None = None
        self._rows = 0

    def add(self, host_keys: np.ndarray, path_keys: np.ndarray | None = None) -> None:
        """Take the next keys in; Malformed where one is below the one before it, or the same.

        The same are let pass where they were allowed. Without *path_keys* host keys are all there is.
        """
        if not len(host_keys):
            return
        first = int(host_keys[0]), 0 if path_keys is None else int(path_keys[0])
        if self._last is not None and (
            first < self._last or (first == self._last and not self._equal_keys)
        ):
            self._refuse(self._rows, equal=first == self._last)
        below, equal = host_keys[1:] < host_keys[:-1], host_keys[1:] == host_keys[:-1]
        if path_keys is not None:
            below |= equal & (path_keys[1:] < path_keys[:-1])
            equal &= path_keys[1:] == path_keys[:-1]
        if below.any():
            self._refuse(self._rows + 1 + int(below.argmax()), equal=False)
        if not self._equal_keys and equal.any():
            self._refuse(self._rows + 1 + int(equal.argmax()), equal=True)
        self._last = int(host_keys[-1]), 0 if path_keys is None else int(path_keys[-1])
        self._rows += len(host_keys)

    def _refuse(self, row: int, *, equal: bool) -> None:
        what = (
            "has the same key as the row before it"
            if equal
            else "has a lower key than the row before it"
        )
        raise Malformed(f"{self._table} row {row} {what}", fault=Fault.NOT_SORTED)
