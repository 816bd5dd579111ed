"""Write the man page of the command `amicrawl`, made of the commands themselves.

python .ci/man_page.py build/man/amicrawl.1
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl import __version__
from amicrawl.cli.commands import COMMANDS, loaded

if TYPE_CHECKING:
    from collections.abc import Iterator


def man_page() -> str:
    """Return the page, in roff with the macros of man(7)."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH AMICRAWL 1 "" "amicrawl {__version__}"'
    yield from (".SH NAME", r"amicrawl \- archival crawler on Scrapy, and what to do with its archives")
    yield from (".SH SYNOPSIS", ".B amicrawl", ".I COMMAND", "[options] [arguments]")
    yield ".SH COMMANDS"
    for name, place in COMMANDS.items():
        if place.is_listed:
            yield from _command(f"amicrawl {name}", loaded(name))
    yield from (".SH EXIT STATUS", "0 done; the others are in docs/exit\\-codes.md.")


def _command(name: str, command: Any) -> Iterator[str]:
    yield f".SS {_text(name)}"
    for paragraph in (command.help or "").split("\n\n"):
        yield from (".PP", _text(paragraph))
    for parameter in command.params:
        if parameter.hidden or parameter.name == "help":
            continue
        yield from (".TP", ".B " + _text(_names(parameter)), _text(parameter.help or ""))
    for below, each in sorted(getattr(command, "commands", {}).items()):
        if not each.hidden:
            yield from _command(f"{name} {below}", each)


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.display_name_raw)
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return f"{names} {parameter.metavar}" if parameter.metavar else names


def _text(text: str) -> str:
    """Return *text* on one line, in which roff sees neither escapes nor requests."""
    line = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(man_page())
