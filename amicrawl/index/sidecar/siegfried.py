"""PRONOM identifiers by siegfried (`sf`), where that is installed and Fido's signatures are not.

siegfried knows newer signatures, but is a program of its own: it is started for every payload, given it
on standard input, and asked for JSON. That takes hundreds of times what the signatures in this process
take. Runs a process; touches nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from amicrawl.index.sidecar.findings import Identity

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60.0
"""Seconds after which a payload is given up."""

_UNKNOWN = "UNKNOWN"
_NAMESPACE = "pronom"


class Siegfried:
    """The program `sf`."""

    name = "siegfried"

    def __init__(self, executable: Path | None = None) -> None:
        """Take *executable*, by default the `sf` on the path; ImportError where none runs."""
        found = str(executable) if executable is not None else shutil.which("sf")
        if found is None:
            raise ImportError("siegfried (sf) is not installed")
        self._executable = found
        try:
            told = self._run("-version", given=b"").decode("utf-8", "replace").split()
        except (OSError, subprocess.SubprocessError) as error:
            raise ImportError(f"{found} does not run: {error}") from error
        self.version = " ".join(word for word in told if word.isprintable())[:200]

    def identify(self, content: bytes, *, is_whole: bool) -> Identity:
        """Return media type and identifier of *content*; of several, the first.

        ValueError where what it answers is not understood, and what `subprocess` raises where it fails.
        """
        del is_whole  # it cannot be told
        answer: Any = json.loads(self._run("-json", "-", given=content))
        try:
            for match in answer["files"][0]["matches"]:
                if match["ns"] == _NAMESPACE and match["id"] != _UNKNOWN:
                    return Identity(_word(match.get("mime", "")), _word(match["id"]))
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError("siegfried answered with other JSON than is known") from error
        return Identity()

    def _run(self, *options: str, given: bytes) -> bytes:
        done = subprocess.run(  # noqa: S603  # the program is the operator's; payloads are its input only
            [self._executable, *options],
            input=given,
            capture_output=True,
            timeout=PATIENCE_S,
            check=True,
        )
        return done.stdout


def _word(text: str) -> str:
    """Return the first word of *text*, as there may be several media types with commas between them."""
    if not isinstance(text, str):
        raise TypeError
    first = text.partition(",")[0].strip()
    return first if first.isprintable() and " " not in first else ""
