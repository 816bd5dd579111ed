"""The dashboard: a web page and an HTTP API to see and steer jobs."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.dashboard.job_choice import JobChoice
    from amicrawl.fleet.dashboard.serving import Settings, serve, serve_watch
    from amicrawl.fleet.dashboard.shapes import Job
    from amicrawl.fleet.dashboard.users import Role, Users
    from amicrawl.fleet.dashboard.views import past_view
else:
    __getattr__, __all__ = lazy_exports(__spec__)
