"""An engine that does nothing but note what a run calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class StandInEngine:
    """Calls *ended* with the reason for which it is to close, and adds to *woken*."""

    def __init__(
        self, ended: Callable[[str], object] = lambda _: None, *, woken: list[bool] | None = None
    ) -> None:
        self._ended = ended
        self._woken = [] if woken is None else woken

    def wake(self) -> None:
        self._woken.append(True)

    def pause(self) -> None:
        """Do nothing: only Scrapy's own scheduler has to be paused."""

    def resume(self) -> None:
        """Do nothing: only Scrapy's own scheduler has to be paused."""

    def close(self, reason: str) -> bool:
        self._ended(reason)
        return True
