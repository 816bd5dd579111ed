"""The check of the container recipe leaves nothing running, however it ends and was started."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from loopback import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

CHECK = PROJECT / ".ci" / "recipe_check.py"

STARTS = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("recipe_check", sys.argv[2])
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
check.heed_signals()
with check.Image(Path(sys.argv[1])) as image:
    child = image.start(["sleep", "300"], {}, Path(sys.argv[1]) / "log")
    print(child.pid, flush=True)
    """


def recipe_check() -> Any:
    spec = importlib.util.spec_from_file_location("recipe_check", CHECK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_was_started_is_stopped_when_a_check_fails(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    image = recipe_check().Image(tmp_path)
    with suppress(SystemExit), image:
        image.start(["sleep", "300"], {}, tmp_path / "log")
        raise SystemExit("a probe does not succeed")
    assert [child.poll() for child in image.children] == [-signal.SIGTERM]


def started(tmp_path: Path, then: str) -> subprocess.Popen[str]:
    """Start a check in a shell's background, where SIGINT is ignored; it does *then* with its child."""
    (tmp_path / "data").mkdir()
    line = 'trap "" INT; exec "$@"'
    words = ["sh", "-c", line, "sh", sys.executable, "-c", STARTS + then, str(tmp_path), str(CHECK)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_containers_stop_by_sigint_where_the_shell_has_it_ignored(tmp_path: Path) -> None:
    check = started(tmp_path, "child.send_signal(2); print(child.wait(60), flush=True)")
    said, _ = check.communicate(timeout=60)
    assert said.split()[1:] == ["-2"]


def test_a_check_that_is_terminated_stops_what_it_started(tmp_path: Path) -> None:
    with started(tmp_path, "child.wait()") as check:
        assert check.stdout is not None
        number = int(check.stdout.readline())
        check.terminate()
    assert check.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
