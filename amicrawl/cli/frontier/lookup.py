"""`amicrawl frontier show` and `explain`: what is known of one URL, and why it is or is not due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.frontier.output import AnyPath, AtHour, print_lines
from amicrawl.cli.frontier.row_facts import conventions, find, host_facts, row_facts
from amicrawl.cli.frontier.source import opened
from amicrawl.cli.frontier.verdict import Asked, sentences
from amicrawl.cli.frontier.words import HOUR, key_text
from amicrawl.cli.json_answer import AsJson, json_text
from amicrawl.errors import InputError
from amicrawl.terminal import harmless
from amicrawl.urls import Canonical, canonical_form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.cli.frontier.source import Source

_Url = Annotated[str, typer.Argument(metavar="URL", help="The URL, as found or in its canonical form.")]
_INDENT = 22


def show(path: AnyPath, url: _Url, *, as_json: AsJson = False) -> None:
    """Show every field of the row that URL has in PATH, and of its host.

    Example: amicrawl frontier show ami-out https://example.com/
    """
    with opened(path) as source:
        match = find(source, url)
        if match is None:
            raise _not_found(path, source, url)
        facts = row_facts(source, match.row)
        host = host_facts(source, match.key.host)
        found = {"url": url, "matched_by": match.convention, "row": facts, "host": host}
        print_lines([json_text(found)] if as_json else _shown(found))


def _not_found(path: Path, source: Source, url: str) -> InputError:
    keys = ", ".join(
        f"{key_text(key.host)}:{key_text(key.path)} ({convention})"
        for convention, key in conventions(source, url)
    )
    return InputError(
        f"{path} has no row for {harmless(url)}. These keys were looked for: {keys}. Check the URL, or "
        "list what there is with amicrawl frontier ls."
    )


def _shown(found: dict[str, Any]) -> Iterator[str]:
    yield harmless(found["url"])
    yield f"matched by its {found['matched_by']}"
    yield from _fields("row", found["row"])
    if found["host"] is None:
        yield "host: no row"
    else:
        yield from _fields("host", found["host"])


def _fields(what: str, facts: dict[str, Any]) -> Iterator[str]:
    """Write each field in a line, with what decodes it behind it."""
    yield f"{what} {facts['row']}:"
    for name, value in facts.items():
        if name == "row" or _decodes(name, facts):
            continue
        text = "-" if value is None else value if isinstance(value, str) else json_text(value)
        decoded = facts.get(f"{name}_at") or facts.get(f"{name}_name") or facts.get("flag_names")
        if decoded and (name == "flags" or f"{name}_at" in facts or f"{name}_name" in facts):
            text += f"  ({', '.join(decoded) if isinstance(decoded, list) else decoded})"
        yield f"  {name:<{_INDENT}}{harmless(text)}"


def _decodes(name: str, facts: dict[str, Any]) -> bool:
    stem = name.rpartition("_")[0]
    return name == "flag_names" or (name.endswith(("_at", "_name")) and stem in facts)


def explain(path: AnyPath, url: _Url, *, at: AtHour = 0, as_json: AsJson = False) -> None:
    """Say why URL is or is not due in PATH.

    Example: amicrawl frontier explain ami-out https://example.com/
    """
    now = at * HOUR or int(time.time())
    with opened(path) as source:
        match = find(source, url)
        form = canonical_form(url)
        asked = Asked(
            url,
            form.url if isinstance(form, Canonical) else None,
            None if isinstance(form, Canonical) else str(form.reason),
            now,
        )
        tried = [
            {"reading": name, "host_key": key_text(key.host), "path_key": key_text(key.path)}
            for name, key in conventions(source, url)
        ]
        row = None if match is None else row_facts(source, match.row)
        host = host_facts(source, (match.key if match else conventions(source, url)[0][1]).host)
        verdict = sentences(asked, None if match is None else match.convention, row, host)
        if as_json:
            known = {"url": url, "canonical": asked.canonical, "hour": now // HOUR, "due": verdict.due}
            print_lines(
                [json_text({**known, "keys": tried, "row": row, "host": host, "says": verdict.says})]
            )
        else:
            print_lines(map(harmless, verdict.says))
