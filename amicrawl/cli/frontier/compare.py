"""`amicrawl frontier diff`: what differs between two frontiers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.frontier.output import AnyPath, Limit, as_text_field, float_value, key_text
from amicrawl.cli.frontier.source import partition_in
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.errors import InputError
from amicrawl.frontier.format.difference import head_differences, row_differences
from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.strings import annex_at, string_at
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.frontier.format.difference import RowDifference
    from amicrawl.frontier.format.partition import Partition

_NAMED_BY = {"urls": "url_ref", "hosts": "host_ref"}
_WHAT = {"urls": "URL row", "hosts": "host row"}
_HEX = frozenset({"host_key", "path_key", "content_fp", "simhash"})


New = Annotated[Path, typer.Argument(help="As OLD.")]


def diff(old: AnyPath, new: New, *, limit: Limit = 50, as_json: AsJson = False) -> None:
    """Show which rows were added, removed or changed from OLD to NEW, and in which fields.

    Where in a file a string lies makes no difference. With --json one object a line, all rows.
    Example: amicrawl frontier diff yesterday.meguri ami-out
    """
    before, after = partition_in(old), partition_in(new)
    try:
        print_lines(_as_json(before, after) if as_json else _as_text(before, after, limit))
    except Malformed as error:
        raise InputError(f"{old} and {new} cannot be compared: {error.reason}.") from error


def _as_json(old: Partition, new: Partition) -> Iterator[str]:
    for name, (left, right) in head_differences(old, new).items():
        yield json_text({"what": "head", "field": name, "old": _plain(left), "new": _plain(right)})
    for found in row_differences(old, new):
        yield json_text(_facts(old, new, found))


def _as_text(old: Partition, new: Partition, limit: int) -> Iterator[str]:
    count = 0
    for name, (left, right) in head_differences(old, new).items():
        count += 1
        yield harmless(f"head: {name} {_plain(left)} -> {_plain(right)}")
    kinds = {"added": 0, "removed": 0, "changed": 0}
    for found in row_differences(old, new):
        kind = _kind(found)
        kinds[kind] += 1
        if not limit or sum(kinds.values()) <= limit:
            facts = _facts(old, new, found)
            yield harmless(f"{kind} {_WHAT[found.table]} {facts['key']} {_name(facts)}")
            for name, (left, right) in facts.get("fields", {}).items():
                yield harmless(f"  {name}: {left} -> {right}")
    total = sum(kinds.values())
    if limit and total > limit:
        yield f"... and {total - limit:,} more; --limit says how many are shown"
    if total or count:
        yield ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    else:
        yield "no difference"


def _kind(found: RowDifference) -> str:
    return "added" if found.old is None else "removed" if found.new is None else "changed"


def _facts(old: Partition, new: Partition, found: RowDifference) -> dict[str, Any]:
    side, row = (new, found.new) if found.old is None else (old, found.old)
    assert row is not None
    table = getattr(side, found.table)
    key = key_text(int(table["host_key"][row]))
    if found.table == "urls":
        key += ":" + key_text(int(table["path_key"][row]))
    named = string_at(side.arena, int(table[_NAMED_BY[found.table]][row]))
    facts: dict[str, Any] = {
        "what": _kind(found),
        "table": found.table,
        "key": key,
        **as_text_field("name", named),
    }
    if found.old is not None and found.new is not None:
        facts["fields"] = {
            name: [_value(old, found.table, found.old, name), _value(new, found.table, found.new, name)]
            for name in found.fields
        }
    return facts


def _name(facts: dict[str, Any]) -> str:
    return str(facts.get("name") or facts.get("name_hex") or "-")


def _value(partition: Partition, table: str, row: int, name: str) -> Any:
    """Return what a column says, a reference as its string and an annex as its text."""
    columns = getattr(partition, table)
    if name.endswith("_annex"):
        return _text(annex_at(partition.arena, int(columns[f"{name.removesuffix('_annex')}_ref"][row])))
    if name.endswith("_ref"):
        return _text(string_at(partition.arena, int(columns[name][row])))
    value = columns[name][row].item()
    if name in _HEX:
        return key_text(value)
    return _plain(value)


def _text(octets: bytes | None) -> str | None:
    return None if octets is None else octets.decode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [[_text(part) for part in pair] for pair in value]
    return float_value(value) if isinstance(value, float) else value
