"""Other projects' commands, each in an environment of its own: `peers/NAME/requirements.txt` pins it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_PEERS = Path(__file__).parent / "peers"


def peer_command(name: str, command: str) -> str:
    """Return the path of *command* of the peer *name*, installed if it is missing or not as pinned."""
    environment, pins = _PEERS / name / ".venv", _PEERS / name / "requirements.txt"
    stamp = environment / "ready"
    if not stamp.exists() or stamp.read_text() != pins.read_text():
        shutil.rmtree(environment, ignore_errors=True)
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(environment / "bin" / "python")]
        subprocess.run([*install, "--no-deps", "--require-hashes", "-r", str(pins)], check=True)
        stamp.write_text(pins.read_text())
    return str(environment / "bin" / command)
