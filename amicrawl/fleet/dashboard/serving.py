"""Serving: the options of the server, checked, and the server itself, which runs in a thread."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING

import uvicorn

from amicrawl.errors import AmicrawlError, InputError, OutputError, UsageError
from amicrawl.fleet.dashboard.app import Hosts, application, site_of
from amicrawl.fleet.dashboard.connections import ConnectionLimits, connection_factory
from amicrawl.fleet.dashboard.users import Role, Users
from amicrawl.fleet.dashboard.watching import WatchedCrawl, watch_application
from amicrawl.fleet.database import RedisSettings, connect
from amicrawl.urls import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp

    from amicrawl.disk import Disk
    from amicrawl.fleet.dashboard.hub import Hub
    from amicrawl.fleet.dashboard.watching import WriteControl

logger = logging.getLogger(__name__)

PORT = 8650
_GRACE = 3
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where something listens."""

    host: str = "127.0.0.1"
    port: int = PORT
    """0 takes a free one."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServerSettings):
    """How a dashboard is to be served."""

    redis: RedisSettings
    users: Path | None = None
    """The users file; without one no user signs in, and only this machine may connect."""
    archives: Path | None = None
    """The directory that holds those of jobs, for their summaries."""
    allow_hosts: tuple[str, ...] = ()
    """Further names under which the dashboard is reached."""
    jobs_per_user: int = 0
    """Jobs of one user that may be queued or run at once, unless an admin's; 0 for any number."""


@dataclass(slots=True)
class Running:
    """A dashboard that serves in another thread."""

    url: str
    hub: Hub
    thread: threading.Thread = field(repr=False)


def checked_users(settings: Settings, *, disk: Disk) -> Users | None:
    """Return the users of *settings*; UsageError where the dashboard would be open to others."""
    users = None if settings.users is None else Users(settings.users, disk=disk)
    everybody = {} if users is None else users.all()
    if not is_loopback(settings.host) and not everybody:
        raise UsageError(
            f"--host {settings.host} can be reached by others, and no sign-in is required. Name a users "
            "file with --users, and add a user with `amicrawl dashboard user add NAME --role admin "
            "--users FILE`; or leave --host out."
        )
    if settings.allow_hosts and not everybody:
        raise UsageError(
            f"--allow-host {settings.allow_hosts[0]} lets others reach the dashboard through a proxy, "
            "and without --users each of them could do everything. Name a users file with --users, and "
            "add a user with `amicrawl dashboard user add NAME --role admin --users FILE`; or leave "
            "--allow-host out."
        )
    if settings.jobs_per_user and users is None:
        raise UsageError("--jobs-per-user counts by user: name a users file with --users.")
    if users is not None and not any(user.role is Role.admin for user in everybody.values()):
        raise UsageError(
            f"{users.path} has no admin, so no user could manage the others. Add one with "
            f"`amicrawl dashboard user add NAME --role admin --users {users.path}`."
        )
    return users


def serve(settings: Settings, *, disk: Disk) -> None:
    """Serve until a signal comes. UsageError or InputError, before that, for what cannot be followed."""
    stop = threading.Event()
    # The server runs in a thread, where it leaves signals alone; it would end us by the last one again.
    with serving_in_thread(settings, disk=disk) as running:
        logger.info("The dashboard is at %s, over the jobs of %s", running.url, settings.redis.shown)
        if not is_loopback(settings.host) and settings.certificate is None:
            logger.warning(
                "Passwords cross the network as they are: put a proxy with TLS in front, or give "
                "--certificate and --key"
            )
        _wait_for_signal(stop, running.thread)


def _wait_for_signal(stop: threading.Event, thread: threading.Thread) -> None:
    """Wait for SIGINT, SIGTERM or *stop*; AmicrawlError where *thread* ends before."""
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        while not stop.wait(1.0) and thread.is_alive():
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not stop.is_set():
        raise AmicrawlError(
            "The server of the pages has ended by itself. Start it again, and report it, with the lines "
            "above."
        )


def serve_watch(
    directory: Path,
    *,
    port: int,
    write: WriteControl,
    stop: threading.Event,
    on_ready: Callable[[str], None],
) -> None:
    """Show the crawl in *directory* to this machine at *port* until a signal comes, or *stop*.

    *write* writes a control file; *on_ready* is given the address. UsageError where the port is taken.
    """
    settings = ServerSettings(port=port)
    app = watch_application(WatchedCrawl(directory, write=write), hosts=Hosts(settings.host))
    with _served(settings, app, dismiss=lambda: None) as (url, thread):
        on_ready(url)
        _wait_for_signal(stop, thread)


@contextmanager
def serving_in_thread(settings: Settings, *, disk: Disk) -> Iterator[Running]:
    """Serve in another thread as long as the block lasts."""
    with _prepared(settings, disk=disk) as (app, hub):
        hub.start()
        with _served(settings, app, dismiss=hub.dismiss) as (url, thread):
            yield Running(url, hub, thread)


@contextmanager
def _served(
    settings: ServerSettings, app: ASGIApp, *, dismiss: Callable[[], None]
) -> Iterator[tuple[str, threading.Thread]]:
    """Serve *app* in another thread as long as the block lasts; *dismiss* ends what streams."""
    with _listening(settings) as listening:
        server = _WebServer(_configuration(settings, app), dismiss)
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listening]}, name="dashboard", daemon=True
        )
        thread.start()
        deadline = time.monotonic() + _PATIENCE
        while not server.started:
            if time.monotonic() > deadline or not thread.is_alive():
                raise OutputError("The dashboard did not start.")
            time.sleep(0.01)
        try:
            yield _url(settings, listening), thread
        finally:
            server.should_exit = True
            thread.join(timeout=_PATIENCE)


class _WebServer(uvicorn.Server):
    """Ends its streams when it is asked to end; otherwise it would wait for browsers to leave."""

    def __init__(self, config: uvicorn.Config, dismiss: Callable[[], None]) -> None:
        super().__init__(config)
        self._dismiss = dismiss

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        self._dismiss()
        await super().shutdown(sockets=sockets)


def _check(settings: Settings) -> None:
    """Raise UsageError or InputError for what in *settings* cannot be followed."""
    if (settings.certificate is None) != (settings.key is None):
        raise UsageError("--certificate and --key belong together: name both.")
    for proxy in settings.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError as error:
            raise UsageError(
                f"--trusted-proxy {proxy!r} is neither an address nor a network: {error}. Write it as "
                "in 127.0.0.1 or 10.0.0.0/8."
            ) from error
    for path in (settings.certificate, settings.key):
        if path is not None and not path.is_file():
            raise InputError(f"{path} is not a file.")
    if settings.archives is not None and not settings.archives.is_dir():
        raise InputError(f"--archives {settings.archives} is not a directory.")


@contextmanager
def _prepared(settings: Settings, *, disk: Disk) -> Iterator[tuple[ASGIApp, Hub]]:
    users = checked_users(settings, disk=disk)
    _check(settings)
    with closing(connect(settings.redis)) as store:
        site = site_of(
            store,
            users=users,
            archives=settings.archives,
            jobs_per_user=settings.jobs_per_user,
        )
        app = application(site, hosts=Hosts(settings.host, settings.allow_hosts))
        try:
            yield app, site.hub
        finally:
            site.hub.stop()


def _configuration(settings: ServerSettings, app: ASGIApp) -> uvicorn.Config:
    """Return how *app* is served, all of it read; InputError for an unusable certificate or key."""
    configuration = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        # uvloop cannot be closed while a browser still holds a connection over TLS open.
        loop="asyncio",
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=_GRACE,
        # TLS, too, is begun by the connections: uvicorn would have them shake hands without a limit.
        http=connection_factory(ConnectionLimits(), tls=_tls(settings)),  # type: ignore[arg-type]
        # Uvicorn would believe whatever connects from this machine.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        h11_max_incomplete_event_size=32 * 1024,
        limit_concurrency=1000,
        # Taken at once, before the ones that wait longest are closed: far fewer than may be open.
        backlog=256,
    )
    configuration.load()
    return configuration


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    """Return what the certificate of *settings* makes; None where there is none."""
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except OSError as error:  # of OpenSSL, too
        raise InputError(
            f"{settings.certificate} and {settings.key} cannot be used as a certificate and its key, "
            f"both as PEM: {error.strerror or error}."
        ) from error
    return context


@contextmanager
def _listening(settings: ServerSettings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        bound = socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except OSError as error:
        raise UsageError(
            f"Nothing can listen at {settings.host}, port {settings.port}: {error.strerror or error}. "
            "Choose another with --port."
        ) from error
    with bound:
        yield bound


def _url(settings: ServerSettings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.certificate is None else "https"
    return f"{scheme}://{host}:{listening.getsockname()[1]}"
