"""`amicrawl dashboard`: a web page and an HTTP API to see and steer jobs, and who may sign in to it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from amicrawl.cli.options import check_installed
from amicrawl.cli.redis_options import PrefixOption, RedisOption, redis_settings
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from amicrawl.dashboard.users import Users

_NEEDED = ("jinja2", "python_multipart", "starlette", "uvicorn")
_USERS = "AMICRAWL_DASHBOARD_USERS"
_PASSWORD = "AMICRAWL_DASHBOARD_PASSWORD"  # noqa: S105  # the name of a variable

app = typer.Typer(
    add_completion=False,
    help="Watch and control jobs in a browser or over HTTP.",
    invoke_without_command=True,
)
user_app = typer.Typer(no_args_is_help=True, help="Manage the users of the dashboard.")
app.add_typer(user_app, name="user")

Host = Annotated[
    str, typer.Option(help="Address to listen on; any but this machine's own needs --users.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")]
UsersOrNone = Annotated[
    Path | None,
    typer.Option(
        help="Users file; without it every user of this machine is an admin.",
        envvar=_USERS,
        metavar="FILE",
    ),
]
Archives = Annotated[
    Path | None,
    typer.Option(help="Directory of the jobs' archives, for their summaries.", metavar="DIR"),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(help="A further host name of the dashboard.", metavar="NAME"),
]
TrustedProxy = Annotated[
    list[str] | None,
    typer.Option(
        help="Address or network of proxies whose X-Forwarded-For and -Proto are trusted.",
        metavar="NETWORK",
    ),
]
Certificate = Annotated[Path | None, typer.Option(help="Certificate for HTTPS.", metavar="FILE")]
JobsPerUser = Annotated[
    int,
    typer.Option(
        min=0, help="Maximum number of queued and running jobs per user; 0: no limit.", metavar="N"
    ),
]
Key = Annotated[Path | None, typer.Option(help="Private key of the certificate.", metavar="FILE")]
UsersFile = Annotated[
    Path, typer.Option("--users", help="The users file.", envvar=_USERS, metavar="FILE")
]
NewName = Annotated[str, typer.Argument(help="Letters, digits, _ and -.")]
NameToRemove = Annotated[str, typer.Argument(help="Name of the user.")]
RoleName = Annotated[Literal["view", "operate", "admin"], typer.Option(help="What NAME may do.")]
Token = Annotated[bool, typer.Option("--token", help="Print a new token for programs; set no password.")]


@app.callback()
def dashboard(  # noqa: PLR0917  # typer makes options of them
    context: typer.Context,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
    host: Host = "127.0.0.1",
    port: Port = 8650,
    users: UsersOrNone = None,
    archives: Archives = None,
    allow_host: AllowHost = None,
    trusted_proxy: TrustedProxy = None,
    certificate: Certificate = None,
    key: Key = None,
    jobs_per_user: JobsPerUser = 0,
) -> None:
    """Serve the dashboard until a signal comes.

    Example: amicrawl dashboard --redis redis://localhost:6379/0
    """
    if context.invoked_subcommand is not None:
        return
    check_installed("dashboard", *_NEEDED)
    # Imported when it is called for: the extra may not be installed.
    from amicrawl.dashboard.serving import Settings, serve  # noqa: PLC0415

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    settings = Settings(
        redis=redis_settings(redis, prefix),
        host=host,
        port=port,
        users=users,
        archives=archives,
        allow_hosts=tuple(allow_host or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        certificate=certificate,
        key=key,
        jobs_per_user=jobs_per_user,
    )
    serve(settings, disk=Disk())


@user_app.command("add")
def add(name: NewName, role: RoleName, users: UsersFile, token: Token = False) -> None:
    """Add NAME, or give it another role or password.

    The password is asked for, or taken from AMICRAWL_DASHBOARD_PASSWORD.

    Example: amicrawl dashboard user add anna --role operate --users users.json
    """
    found = _users(users)
    from amicrawl.dashboard.users import Role  # noqa: PLC0415

    found.put(name, role=Role[role], password=None if token else _password())
    if token:
        typer.echo(found.add_token(name))


@user_app.command("remove")
def remove(name: NameToRemove, users: UsersFile) -> None:
    """Remove NAME with all tokens; takes effect at once."""
    _users(users).remove(name)


@user_app.command("ls")
def ls(users: UsersFile) -> None:
    """List the users."""
    for user in _users(users).all().values():
        how = ["a password"] * (user.password is not None) + [f"{len(user.tokens)} tokens"] * bool(
            user.tokens
        )
        typer.echo(f"{user.name}\t{user.role.name}\t{', '.join(how) or 'nothing to sign in with'}")


def _users(path: Path) -> Users:
    check_installed("dashboard", *_NEEDED)
    from amicrawl.dashboard.users import Users  # noqa: PLC0415

    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a directory, so there can be no users file in it.")
    return Users(path, disk=Disk())


def _password() -> str:
    given = os.environ.get(_PASSWORD)
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise UsageError(f"There is no terminal to ask for a password at. Set {_PASSWORD}.")
    asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return asked
