"""A change of a setting of a job, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.fleet.jobs import verbs
from amicrawl.fleet.jobs.job_settings import SETTINGS

if TYPE_CHECKING:
    from amicrawl.fleet.database.connection import JobStore
    from amicrawl.fleet.jobs.job_settings import Value

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def change(store: JobStore, ident: str, name: str, *values: Value) -> str:
    """Change the setting *name* of a job to *values*, by the order of its fields; return the report."""
    setting = _BY_NAME[name]
    by_field = zip((field.name for field in setting.fields), values, strict=True)
    return verbs.change_setting(store, ident, setting, dict(by_field))
