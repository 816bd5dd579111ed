"""Secrets by reference: a crawl file and the settings say where one is kept, never what it is.

    env:NAME     the environment variable NAME
    file:PATH    what the file holds, without the line end behind it

Left out: what the secret is for. Nothing here keeps, logs or repeats a secret, in errors neither.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ENV = "env:"
FILE = "file:"
SIZE_LIMIT = 16 * 1024**2
"""Bytes of the largest file that is read; a cookies.txt of a browser has some thousand lines."""
_OTHERS = stat.S_IROTH | stat.S_IWOTH


def is_reference(written: str) -> bool:
    """Return whether *written* says where a secret is, and not what it is."""
    return written.startswith((ENV, FILE)) and bool(written.partition(":")[2].strip())


def resolve(reference: str, base: Path, *, environment: Mapping[str, str] | None = None) -> str:
    """Return the secret that *reference* points at; a relative path starts from *base*.

    *environment* replaces that of the process. Raises InputError where there is no such variable or
    file, or where others on this machine may read the file; UsageError where *reference* is none.
    """
    if not is_reference(reference):
        # What was written instead may be the secret itself, so it is not repeated.
        raise UsageError('A secret is given by reference: write "env:NAME" or "file:PATH".')
    if reference.startswith(ENV):
        name = reference.removeprefix(ENV)
        found = (os.environ if environment is None else environment).get(name)
        if found is None:
            raise InputError(f"The environment variable {name} is not set. Set it and start again.")
        return found
    path = base / reference.removeprefix(FILE)
    if complaint := exposure(path):
        raise InputError(complaint)
    return _content(path)


def exposure(path: Path) -> str:
    """Return what is wrong with who may read or change *path*; empty where nothing is."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""
    if mode & _OTHERS:
        return f"{path} holds a secret, and others may read or change it. Run: chmod o-rw {path}"
    return ""


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise InputError(f"{path} is larger than {SIZE_LIMIT} bytes. Check the path.")
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError:
        # The cause would show the bytes.
        raise InputError(f"{path} is not UTF-8 text. Check the path.") from None
