"""Options and verbs of `amicrawl job` for the settings of jobs, from their declaration.

`job submit` has an option for each setting that a submission may say, and each that can change while
a job waits or runs is a verb.
"""

from __future__ import annotations

import re
from dataclasses import field, fields, make_dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from amicrawl.cli.job.listing import JobArgument
from amicrawl.cli.options import with_parameters
from amicrawl.cli.redis_options import with_store
from amicrawl.errors import UsageError
from amicrawl.fleet.jobs import job_settings, verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.fleet.database import JobStore

_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")


def options_of(settings: Sequence[job_settings.JobSetting]) -> type:
    """Return a dataclass with an option of `job submit` for each of *settings*."""
    return make_dataclass(
        "SettingOptions",
        [(each.name, *_option(each)) for each in job_settings.submitted(settings)],
        frozen=True,
    )


def given_in(options: Any, settings: Sequence[job_settings.JobSetting]) -> dict[str, job_settings.Value]:
    """Return the values by field of the record that *options* has; UsageError for what is none."""
    values: dict[str, job_settings.Value] = {}
    known = {each.name: each for each in settings}
    for option in fields(options):
        value, setting = getattr(options, option.name), known[option.name]
        if value == option.default:
            continue
        if setting.is_range:
            values |= _range(setting, value)
        else:
            values[setting.fields[0].name] = value
    return values


def _option(setting: job_settings.JobSetting) -> tuple[Any, Any]:
    """Return annotation and default of the option for *setting*."""
    first = setting.fields[0]
    name = f"--{setting.verb}"
    if setting.is_range:
        unit = first.kind.unit.upper() if isinstance(first.kind, job_settings.NumberKind) else ""
        shown = typer.Option(
            name, metavar=f"{unit}|MIN-MAX", help=f"{setting.title}, in {unit.lower()}."
        )
        return Annotated[str | None, shown], field(default=None)
    shown = typer.Option(name, help=first.meaning)
    if isinstance(first.kind, job_settings.FlagKind):
        return Annotated[bool, shown], field(default=False)
    if isinstance(first.kind, job_settings.LineKind):
        return Annotated[str, shown], field(default="")
    return Annotated[int | None, shown], field(default=None)


def _range(setting: job_settings.JobSetting, text: str) -> Mapping[str, job_settings.Value]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--{setting.verb} {text!r} is not a {setting.noun}: give a whole number, 500, or a range, "
            "250-375."
        )
    least, greatest = (each.name for each in setting.fields)
    return {least: int(match[1]), greatest: int(match[2] or match[1])}


def command_of(setting: job_settings.JobSetting) -> Callable[..., None]:
    """Return the verb of `amicrawl job` that changes *setting*."""

    def change(store: JobStore, job: str, **given: Any) -> None:
        values = {each.name: _value(each, given[each.argument]) for each in setting.fields}
        if setting.is_range:
            least, greatest = values
            values[greatest] = values[least] if values[greatest] is None else values[greatest]
        typer.echo(verbs.change_setting(store, job, setting, values))

    change.__name__ = setting.name
    example = f"amicrawl job {setting.verb} https://example.org/ {setting.example}"
    change.__doc__ = f"{setting.meaning}\n\nExample: {example}"
    arguments = [
        Parameter(
            each.argument,
            Parameter.POSITIONAL_OR_KEYWORD,
            annotation=_argument(each),
            default=None if place else Parameter.empty,
        )
        for place, each in enumerate(setting.fields)
    ]
    store = Parameter("store", Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
    job = Parameter("job", Parameter.POSITIONAL_OR_KEYWORD, annotation=JobArgument)
    return with_store(with_parameters(change, [store, job, *arguments]))


def _argument(field: job_settings.SettingField) -> Any:
    kind = field.kind
    if isinstance(kind, job_settings.FlagKind):
        return Annotated[Literal["on", "off"], typer.Argument(metavar="on|off")]
    if isinstance(kind, job_settings.LineKind):
        return Annotated[str, typer.Argument(metavar="TEXT", help="Empty to remove it.")]
    return Annotated[int | None, typer.Argument(metavar=field.argument.upper(), help=field.meaning)]


def _value(field: job_settings.SettingField, given: Any) -> Any:
    return given == "on" if isinstance(field.kind, job_settings.FlagKind) else given
