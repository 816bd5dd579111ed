"""`amicrawl dashboard`: a web page and an HTTP API to see and steer jobs, and who may sign in to it."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from amicrawl.cli.options import Port, check_installed, grouped
from amicrawl.cli.redis_options import RedisOptions
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from amicrawl.fleet.dashboard import Users

_NEEDED = ("jinja2", "python_multipart", "starlette", "uvicorn")
_USERS = "AMICRAWL_DASHBOARD_USERS"
_PASSWORD = "AMICRAWL_DASHBOARD_PASSWORD"  # noqa: S105  # the name of a variable

app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
)
user_app = typer.Typer(no_args_is_help=True, help="Manage the users of the dashboard.")
app.add_typer(user_app, name="user")

UsersFile = Annotated[
    Path, typer.Option("--users", help="The users file.", envvar=_USERS, metavar="FILE")
]
NewName = Annotated[str, typer.Argument(help="Letters, digits, _ and -.")]
NameToRemove = Annotated[str, typer.Argument(help="Name of the user.")]
RoleName = Annotated[Literal["view", "operate", "admin"], typer.Option(help="What NAME may do.")]
Token = Annotated[bool, typer.Option("--token", help="Print a new token for programs; set no password.")]


@dataclass(frozen=True)
class ServerOptions:
    """Where the dashboard listens, and which clients may use it."""

    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs --users.")
    ] = "127.0.0.1"
    port: Port = 8650
    users: Annotated[
        Path | None,
        typer.Option(
            help="Users file; without it every user of this machine is an admin.",
            envvar=_USERS,
            metavar="FILE",
        ),
    ] = None
    archives: Annotated[
        Path | None,
        typer.Option(help="Directory of the jobs' archives, for their summaries.", metavar="DIR"),
    ] = None
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further host name of the dashboard.", metavar="NAME")
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="Address or network of proxies whose X-Forwarded-For and -Proto are trusted.",
            metavar="NETWORK",
        ),
    ] = None
    certificate: Annotated[Path | None, typer.Option(help="Certificate for HTTPS.", metavar="FILE")] = (
        None
    )
    key: Annotated[Path | None, typer.Option(help="Private key of the certificate.", metavar="FILE")] = (
        None
    )
    jobs_per_user: Annotated[
        int,
        typer.Option(min=0, help="Maximum number of queued and running jobs per user; 0: no limit."),
    ] = 0


@app.callback()
@grouped
def dashboard(context: typer.Context, *, redis: RedisOptions, server: ServerOptions) -> None:
    """Watch and control jobs in a browser or over HTTP.

    Serves until Ctrl-C or SIGTERM. Example: amicrawl dashboard --redis redis://localhost:6379/0
    """
    if context.invoked_subcommand is not None:
        return
    check_installed("dashboard", *_NEEDED)
    # Imported when it is called for: the extra may not be installed.
    from amicrawl.fleet.dashboard import Settings, serve  # noqa: PLC0415

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    settings = Settings(
        redis=redis.settings(),
        host=server.host,
        port=server.port,
        users=server.users,
        archives=server.archives,
        allow_hosts=tuple(server.allow_host or ()),
        trusted_proxies=tuple(server.trusted_proxy or ()),
        certificate=server.certificate,
        key=server.key,
        jobs_per_user=server.jobs_per_user,
    )
    serve(settings, disk=Disk())


@user_app.command("add")
def add(name: NewName, role: RoleName, users: UsersFile, token: Token = False) -> None:
    """Add NAME, or give it another role or password.

    The password is asked for, or taken from AMICRAWL_DASHBOARD_PASSWORD.

    Example: amicrawl dashboard user add anna --role operate --users users.json
    """
    found = _users(users)
    from amicrawl.fleet.dashboard import Role  # noqa: PLC0415

    found.put(name, role=Role[role], password=None if token else _password())
    if token:
        typer.echo(found.add_token(name))


@user_app.command("remove")
def remove(name: NameToRemove, users: UsersFile) -> None:
    """Remove NAME with all tokens; takes effect at once.

    Example: amicrawl dashboard user remove anna --users users.json
    """
    _users(users).remove(name)


@user_app.command("ls")
def ls(users: UsersFile) -> None:
    """List the users.

    Example: amicrawl dashboard user ls --users users.json
    """
    for user in _users(users).all().values():
        how = ["a password"] * (user.password is not None) + [counted(len(user.tokens), "token")] * bool(
            user.tokens
        )
        typer.echo(f"{user.name}\t{user.role.name}\t{', '.join(how) or 'nothing to sign in with'}")


def _users(path: Path) -> Users:
    check_installed("dashboard", *_NEEDED)
    from amicrawl.fleet.dashboard import Users  # noqa: PLC0415

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
