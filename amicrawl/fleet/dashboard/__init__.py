"""The dashboard: a web page and an HTTP API to see and steer jobs."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.fleet.dashboard.serving import Settings, serve
    from amicrawl.fleet.dashboard.users import Role, Users
else:
    __getattr__ = lazy_exports(
        __name__,
        Role="users",
        Settings="serving",
        Users="users",
        serve="serving",
    )

__all__ = [
    "Role",
    "Settings",
    "Users",
    "serve",
]
