"""An archive of a few kilobytes costs no more memory or time than any other, whatever it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hostile.bombs.archive_bombs import ARCHIVES

if TYPE_CHECKING:
    from pathlib import Path

    from hostile.bombs.confined import Confinement

COMMANDS = {
    "collection": ["collection", "-o", "out"],
    "index": ["index", "-o", "out"],
    "inspect": ["inspect"],
    "sidecar": ["sidecar", "-o", "out"],
    "wacz": ["wacz", "-o", "out.wacz"],
    "wat": ["wat", "-o", "out"],
    "wet": ["wet", "-o", "out"],
}


@pytest.mark.parametrize("bomb", ARCHIVES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_reader_of_archives_stays_within_its_bounds(
    command: str, bomb: str, tmp_path: Path, confined: Confinement
) -> None:
    (tmp_path / bomb).write_bytes(ARCHIVES[bomb]())
    (tmp_path / "out").mkdir()
    ended = confined.run([*COMMANDS[command], bomb], where=tmp_path)
    assert ended.is_orderly(), ended
    assert ended.code in (0, 2, 3, 5), ended
    assert bomb in ended.errors + ended.output, ended
