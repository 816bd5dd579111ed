"""Answers in JSON: the option `--json`, and objects that a terminal may be shown."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsOneObject = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def json_text(found: Any) -> str:
    """Return *found* as one line of JSON that a terminal cannot mistake for commands."""
    # In ASCII, DEL is all that JSON leaves raw and a terminal may obey.
    return json.dumps(found).replace("\x7f", "\\u007f")
