"""Scripts that Redis runs, each in one go: the `.lua` files beside this module, one for each name.

A script takes every key that it touches as a key, and texts as arguments. It is sent once and called by
its digest after that; a server that has lost it is sent it again.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis import Redis
    from redis.commands.core import Script


_INCLUDE = "--!include "
"""How the first line of a script begins that needs another file in front of it."""


class Scripts:
    """The scripts of this room, for one client."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._registered: dict[str, Script] = {}

    def __call__(
        self, name: str, *, keys: Sequence[str] = (), args: Sequence[str | int | float] = ()
    ) -> Any:
        """Run the script *name* and return what it returns. Raises what redis-py raises."""
        return self.script(name)(keys=list(keys), args=list(args))

    def script(self, name: str) -> Script:
        """Return the script *name*, which may be called with a `client=` that is a pipeline, too."""
        script = self._registered.get(name)
        if script is None:
            script = self._registered[name] = self._client.register_script(source(name))
        return script


@cache
def source(name: str) -> str:
    """Return the text of the script *name*, behind what it includes."""
    text = resources.files(__package__).joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    return source(first.removeprefix(_INCLUDE)) + rest if first.startswith(_INCLUDE) else text


def names() -> list[str]:
    """Return the names of all scripts, sorted; not of what they include."""
    files = resources.files(__package__).joinpath("scripts").iterdir()
    return sorted(
        file.name.removesuffix(".lua")
        for file in files
        if file.name.endswith(".lua") and not file.name.startswith("_")
    )
