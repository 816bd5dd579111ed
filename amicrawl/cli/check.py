"""`amicrawl check`: say what is wrong with crawl files, before anything is fetched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.options import AsOneObject
from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawlfile import Fault, effective, examine, read_sheet, shipped_schema
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.crawlfile import CrawlFile, Examined

_LIMIT = 2000


CrawlFiles = Annotated[list[Path] | None, typer.Argument(help="Crawl files.", show_default=False)]
Effective = Annotated[
    bool,
    typer.Option("--effective", help="Print the file, and all that it extends, as one TOML text."),
]
Schema = Annotated[
    bool, typer.Option("--schema", help="Print the JSON Schema of crawl files, for editors.")
]


def check(
    files: CrawlFiles = None,
    as_json: AsOneObject = False,
    show: Effective = False,
    schema: Schema = False,
) -> None:
    """Check crawl FILES, and report every fault with its line.

    A file that another one of FILES extends need not describe a whole crawl. What is missing only here
    (a seed list, a secret) is a note. Example: amicrawl check crawls/*.toml
    """
    if schema:
        typer.echo(shipped_schema(), nl=False)
        return
    if not files:
        raise UsageError("No file is named. Name crawl files: amicrawl check crawls/*.toml")
    checked, missing = _examined(files)
    if show:
        _show_effective(checked, missing)
    elif as_json:
        listed = [_as_object(one) for one in checked]
        listed += [{"path": str(path), "ok": False, "missing": str(reason)} for path, reason in missing]
        typer.echo(json.dumps({"files": listed}, indent=2))
    else:
        printed: set[Fault] = set()
        for one in checked:
            _print(one, printed)
        for _, reason in missing:
            typer.secho(harmless(str(reason), limit=_LIMIT), fg="red")
    if missing:
        raise typer.Exit(ExitCode.INPUT)
    if any(one.faults for one in checked):
        raise typer.Exit(ExitCode.USAGE)


def _examined(files: Sequence[Path]) -> tuple[list[Examined], list[tuple[Path, InputError]]]:
    """Return *files* looked at, and those that cannot be read with the reason."""
    checked, missing, parts = [], [], set()
    for path in files:
        try:
            parts |= {base.resolve() for base in read_sheet(path).bases}
        except InputError as error:
            missing.append((path, error))
    gone = {path for path, _ in missing}
    checked = [examine(path, is_part=path.resolve() in parts) for path in files if path not in gone]
    return list(_compared(checked)), missing


def _compared(checked: Sequence[Examined]) -> Iterator[Examined]:
    """Yield *checked*, each that crawls into the directory of one before it with a note."""
    firsts: dict[Path, Path] = {}
    for one in checked:
        if one.faults or one.is_part:
            yield one
            continue
        directory = _out(one.file) / one.file.settings.get(f"{PREFIX}RUN_ID", "")
        first = firsts.setdefault(directory.resolve(), one.path)
        if first.resolve() == one.path.resolve():
            yield one
        else:
            note = Fault(one.path, None, f"its directory is that of {first}, too: write another out.")
            yield replace(one, notes=(*one.notes, note))


def _show_effective(checked: Sequence[Examined], missing: Sequence[tuple[Path, InputError]]) -> None:
    if len(checked) + len(missing) != 1:
        raise UsageError("--effective prints one file. Name just one.")
    for one in checked:
        _print_faults(one.faults, err=True)
        if not one.faults:
            typer.echo(effective(one.sheet, directory=Path.cwd()), nl=False)
    for _, reason in missing:
        typer.secho(harmless(str(reason), limit=_LIMIT), fg="red", err=True)


def _print(one: Examined, printed: set[Fault]) -> None:
    """Print the faults and notes of a file, without those in *printed*: files share what they extend."""
    _print_faults([fault for fault in one.faults if fault not in printed], err=False)
    for note in one.notes:
        if note not in printed:
            typer.secho(harmless(f"{note} (a note)", limit=_LIMIT), fg="yellow")
    printed.update(one.faults, one.notes)
    if not one.faults:
        typer.secho(harmless(f"{one.path}: {_summary(one)}", limit=_LIMIT), fg="green")


def _print_faults(faults: Sequence[Fault], *, err: bool) -> None:
    for fault in faults:
        typer.secho(harmless(str(fault), limit=_LIMIT), fg="red", err=err)


def _summary(one: Examined) -> str:
    if one.is_part:
        return "good, as a part of others."
    facts = _facts(one.file)
    return (
        f"good. Spider {facts['spider']}, seeds {facts['seeds']}, delay {facts['delay']:g} s, "
        f"out {facts['out']}"
    )


def _facts(file: CrawlFile) -> dict[str, Any]:
    return {
        "spider": file.spider,
        "seeds": " ".join(file.arguments[name] for name in ("url", "file") if name in file.arguments),
        "delay": file.settings.get(f"{PREFIX}DELAY", CrawlConfig.model_fields["delay"].default),
        "out": str(_out(file) / file.run_id),
    }


def _out(file: CrawlFile) -> Path:
    return Path(file.settings.get(f"{PREFIX}OUT", CrawlConfig.model_fields["out"].default))


def _as_object(one: Examined) -> dict[str, Any]:
    found = {
        "path": str(one.path),
        "ok": not one.faults,
        "part": one.is_part,
        "faults": [_fault_object(fault) for fault in one.faults],
        "notes": [_fault_object(note) for note in one.notes],
    }
    return found if one.faults or one.is_part else {**found, **_facts(one.file)}


def _fault_object(fault: Fault) -> dict[str, Any]:
    return {"path": str(fault.path), "line": fault.line, "sentence": fault.sentence}
