"""The add-on: one line in `ADDONS` turns any Scrapy project into an archiving one.

    ADDONS = {"amicrawl.crawl.addon.ArchiveAddon": 300}

Whatever the project itself sets wins, with one exception that is the point of it all: the download
handlers for http and https, the scheduler and the downloader are ours unless the project names its
own after the add-on's.

What a crawl has no use for is left out of Scrapy before it is imported. Each component costs 20 to 100
microseconds a page, together more than the fetch itself, and some bring a web server, a terminal or the
list of public suffixes with them. They are taken out of Scrapy's own lists, by their paths: a project
that names one in its settings keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from urllib.request import getproxies

from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES, default_settings
from scrapy.utils.misc import load_object

from amicrawl import __version__
from amicrawl.config import (
    PREFIX,
    SETTINGS,
    CrawlConfig,
    Headers,
    Identity,
    LogFormat,
    Rendering,
    Robots,
)
from amicrawl.crawl.arguments import JOB_ARGUMENT, default_headers
from amicrawl.crawl.credentials import read_credentials
from amicrawl.crawl.event_loop import choose_loop, take_the_loop_there_is
from amicrawl.crawl.extensions import Closing, FrontierWriter
from amicrawl.crawl.internals import ScrapyEngine, have_handlers
from amicrawl.crawl.middlewares import AsFoundRedirectMiddleware, PolitenessMiddleware
from amicrawl.crawl.pipelines import CapturesPipeline, WarcPipeline
from amicrawl.crawl.processes.specification import is_child
from amicrawl.crawl.run import Run, RunHolder
from amicrawl.crawl.spec import CrawlSpec, is_guest, reads_responses
from amicrawl.crawl.watching.control import Control
from amicrawl.crawl.watching.logs import drop_early_lines, format_handlers
from amicrawl.crawl.watching.progress import Progress
from amicrawl.crawl.watching.stopping import DiskRoom, StopConditions
from amicrawl.errors import UsageError
from amicrawl.invalid import refuse_near_names
from amicrawl.record import Unkept
from amicrawl.terminal import keep_standard_streams
from amicrawl.wings import REGISTERED

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_CMDLINE_PRIORITY = SETTINGS_PRIORITIES["cmdline"]
_HANDLER = "amicrawl.crawl.handler.WireHandler"

# Each line is a measured or a safety choice; docs/settings.md gives the reasons.
_DEFAULTS: dict[str, object] = {
    "SCHEDULER": "amicrawl.crawl.scheduler.FrontierScheduler",
    "DOWNLOADER": "amicrawl.crawl.downloader.ArchiveDownloader",
    "LOG_FORMATTER": "amicrawl.crawl.watching.logs.QuietLogFormatter",
    "CONCURRENT_ITEMS": 1,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "AUTOTHROTTLE_ENABLED": False,
}

_WITHOUT_CALLBACKS: dict[str, object] = {
    # The frontier tries again by itself; cookies and refreshed pages belong to a browsing spider.
    "RETRY_ENABLED": False,
    "COOKIES_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "DOWNLOADER_STATS": False,
    "COMPRESSION_ENABLED": False,
}

_FOR_CALLBACKS = {
    # The handler of a spider without callbacks sends the default fields by itself.
    "DOWNLOADER_MIDDLEWARES_BASE": {
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware",
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware",
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware",
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware",
    },
    # All of these look at what a callback yields, or at statuses on the way to one.
    "SPIDER_MIDDLEWARES_BASE": {
        "scrapy.spidermiddlewares.depth.DepthMiddleware",
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware",
        "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware",
        "scrapy.spidermiddlewares.referer.RefererMiddleware",
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware",
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware",
    },
    "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats"},
}

_REPLACED = {
    "DOWNLOADER_MIDDLEWARES_BASE": {
        "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware",
        "scrapy.downloadermiddlewares.redirect.RedirectMiddleware",
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware",
    }
}
"""In their place are components of ours."""

_SWITCHES = {
    "TELNETCONSOLE_ENABLED": ("EXTENSIONS_BASE", "scrapy.extensions.telnet.TelnetConsole"),
    "REMOTE_CONTROL_ENABLED": ("EXTENSIONS_BASE", "scrapy.extensions.remote_control.RemoteControl"),
    "COOKIES_ENABLED": (
        "DOWNLOADER_MIDDLEWARES_BASE",
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware",
    ),
}
"""The setting that switches a component of Scrapy, and the list that has it."""


class ArchiveAddon(RunHolder):
    """Wires the crawl; holds what its parts share."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build the add-on of *crawler*, whose settings come later."""
        return cls(crawler)

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Choose the event loop, which may be installed before any crawler exists."""
        keep_standard_streams()
        choose_loop(settings)
        if settings.get(PREFIX + "LOG_FORMAT") == LogFormat.JSON:
            drop_early_lines()

    def update_settings(self, settings: BaseSettings) -> None:
        """Set everything that the project has not set itself.

        Raises UsageError for an `AMICRAWL_*` setting that cannot be followed, and NotConfigured for
        Scrapy's commands that look at a page and do not archive it.
        """
        take_the_loop_there_is(settings)
        guest = is_guest(self._crawler.spidercls)
        _refuse_near_names(settings, guest=guest)
        given = dict(settings) if guest else _with_scrapy_pace(settings)
        config = CrawlConfig.from_settings(_with_job_directory(given, self._crawler))
        if not guest or config.log_format is LogFormat.JSON:
            format_handlers(config.log_format)
        if _only_looks(self._crawler):
            if not guest:
                _set_for_looking(settings, config)
            raise NotConfigured
        if guest:
            from amicrawl.crawl.guest.settings import set_for_guest  # noqa: PLC0415  # see `_place`

            set_for_guest(settings, config)
            self.run = self._make_run(config, settings)
        else:
            _set_for_archiving(settings, self._crawler, config)
            self.run = self._make_run(config, settings)
            self._complete_run(self.run, settings)

    def _complete_run(self, run: Run, settings: BaseSettings) -> None:
        """Give *run*, of a spider of ours, its robots.txt, its links, and the count of what it lacks."""
        config, spider = run.config, self._crawler.spider
        obeys = config.robots is not Robots.IGNORE or run.overrides.obey_somewhere
        settings.set("ROBOTSTXT_OBEY", obeys, "addon")
        run.obeys = settings.getbool("ROBOTSTXT_OBEY")
        if run.obeys:
            _place(settings, "DOWNLOADER_MIDDLEWARES", "amicrawl.crawl.robots.RobotsMiddleware", 100)
        if getattr(spider, "follows_links", False):
            from amicrawl.crawl.following import make_following  # noqa: PLC0415  # see `_place`

            run.following = make_following(config, spider, key_of=run.key_of)
            run.unkept = run.following.unkept
            run.tally.on_count.append(run.unkept.fetched)
        elif config.browser is Rendering.NEVER:
            run.unkept = Unkept()
            run.tally.on_count.append(run.unkept.listed)

    def _make_run(self, config: CrawlConfig, settings: BaseSettings) -> Run:
        spider = self._crawler.spider or self._crawler.spidercls
        # What shard it is, is known before the frontier is opened, which may have links to give back.
        spec = CrawlSpec.of(spider, job_directory=str(settings.get("JOBDIR") or ""))
        engine = ScrapyEngine(self._crawler, pauses=spec.is_guest)
        run = Run(config, config.identity or Identity.CANONICAL, spec, engine=engine)
        run.user_agent = _agent_in_force(settings, spider)
        run.part_of = _part_of(config, spider)
        run.credentials = read_credentials(config)
        return run


def _only_looks(crawler: Crawler) -> bool:
    """Tell whether *crawler* belongs to a command that archives nothing."""
    # No command says so. But all give the spider a `start` of their own, except for the shell, which
    # sets a crawler up before there is a spider. So do tests of projects, but without its settings.
    start = getattr(crawler.spidercls, "start", None)
    is_shell = crawler.spider is None and _has_shell_settings(crawler)
    return is_shell or getattr(start, "__module__", "").startswith("scrapy.commands.")


def _has_shell_settings(crawler: Crawler) -> bool:
    from scrapy.commands.shell import Command  # noqa: PLC0415  # most crawlers have a spider

    priority, command = crawler.settings.getpriority, SETTINGS_PRIORITIES["command"]
    return any(priority(name) == command for name in Command.default_settings)


def _refuse_near_names(settings: BaseSettings, *, guest: bool) -> None:
    """Refuse settings of the command line that are nearly ours; UsageError names the right one.

    A project's own spider may read a setting of any name, unless it begins as ours do.
    """
    given = [name for name in settings if settings.getpriority(name) == _CMDLINE_PRIORITY]
    if guest:
        given = [name for name in given if name.upper().startswith(PREFIX)]
    refuse_near_names(given, ours=SETTINGS, others=vars(default_settings), prefix=PREFIX)


def _with_scrapy_pace(settings: BaseSettings) -> dict[str, Any]:
    """Return *settings* with Scrapy's own pace as ours, where a project set one and not the other.

    A project that contacts a host every 5 s by DOWNLOAD_DELAY must not be sped up by switching archiving
    on; the gate replaces Scrapy's slots, so it has to keep their promise.
    """
    given: dict[str, Any] = dict(settings)
    for theirs, ours in (
        ("DOWNLOAD_DELAY", "AMICRAWL_DELAY"),
        ("CONCURRENT_REQUESTS_PER_DOMAIN", "AMICRAWL_PER_HOST"),
        ("CONCURRENT_REQUESTS", "AMICRAWL_INFLIGHT_MAX"),
    ):
        set_by_project = (settings.getpriority(theirs) or 0) > 0
        if set_by_project and settings.getpriority(ours) is None:
            given[ours] = settings[theirs]
    return given


def _with_job_directory(given: dict[str, Any], crawler: Crawler) -> dict[str, Any]:
    """Give a job of scrapyd a directory of its own, below `AMICRAWL_OUT`, where none is named.

    Jobs of one project run side by side with the same settings, and one directory takes one crawl. What
    a crawl file or a spider's `custom_settings` say is for that crawl, and a name; so is an argument,
    for which the spider has no `_job`.
    """
    job = getattr(crawler.spider, JOB_ARGUMENT, None)
    is_named = crawler.settings.getpriority("AMICRAWL_OUT") == SETTINGS_PRIORITIES["spider"]
    if job and not is_named and not given.get("AMICRAWL_RUN_ID"):
        given["AMICRAWL_RUN_ID"] = str(job)
    return given


def _user_agent(config: CrawlConfig) -> str:
    agent = f"amicrawl/{__version__}"
    contact = "".join(c for c in config.operator if " " <= c <= "~" and c not in "()")
    return f"{agent} (+{contact})" if contact else agent


def _agent_in_force(settings: BaseSettings, spider: Any) -> str:
    """Return the `User-Agent` that requests carry which name none themselves."""
    fields = settings.getdict("DEFAULT_REQUEST_HEADERS")
    named = [value for name, value in fields.items() if str(name).lower() == "user-agent"]
    # In the order in which Scrapy's middlewares come to it.
    return str(named[0] if named else getattr(spider, "user_agent", settings["USER_AGENT"]) or "")


def _part_of(config: CrawlConfig, spider: Any) -> str:
    """Return the name of a crawl by *config*; empty where it has none.

    The directory of a job has the name of the job.
    """
    job = config.directory.absolute().name if getattr(spider, "job", None) is not None else ""
    return config.run_id or str(getattr(spider, "share", None) or "") or job


def _set_for_looking(settings: BaseSettings, config: CrawlConfig) -> None:
    """Have a command that archives nothing identify itself as we do, and serve no console."""
    for name in ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED"):
        settings.set(name, _DEFAULTS[name], "addon")
    settings.set("USER_AGENT", _user_agent(config), "addon")
    _leave_out_switched(settings)


def _set_for_archiving(settings: BaseSettings, crawler: Crawler, config: CrawlConfig) -> None:
    """Put our components in their places, for a spider of ours, and leave out what it does not need."""
    for name, value in _DEFAULTS.items():
        settings.set(name, value, "addon")
    settings.set("USER_AGENT", _user_agent(config), "addon")
    _set_handlers(settings)
    _set_components(settings, crawler.spider, config)
    if not reads_responses(crawler):
        _trim_to_archiving(settings, config.headers)
    if settings.getbool("COMPRESSION_ENABLED"):
        path = "amicrawl.crawl.middlewares.TolerantDecodingMiddleware"
        _place(settings, "DOWNLOADER_MIDDLEWARES", path, 590)
    _leave_out_switched(settings)


def _set_handlers(settings: BaseSettings) -> None:
    """Fetch http and https with our handler, nothing from the local disk, and nothing past the guard.

    Scrapy's handlers for ftp and s3 dial whatever address a redirect names, and wait without a cap.
    """
    ours = {"http": _HANDLER, "https": _HANDLER, "file": None, "ftp": None, "s3": None}
    have_handlers(settings, ours)


def _place(settings: BaseSettings, components: str, path: str, number: int) -> None:
    """Put the component *path* among *components*, unless the project has done so.

    By its path, since each is imported only for a crawl that uses it: together they take as long to
    import as all that a crawl of a list needs.
    """
    settings.setdefault_in_component_priority_dict(components, load_object(path), number)


def _set_components(settings: BaseSettings, spider: Any, config: CrawlConfig) -> None:
    if config.browser_proxy:
        raise UsageError(
            "AMICRAWL_BROWSER_PROXY is for projects with scrapy-playwright. For amicrawl's own spiders, "
            "set AMICRAWL_BROWSER to always or auto."
        )
    _leave_out_replaced(settings)
    place = settings.setdefault_in_component_priority_dict
    place("DOWNLOADER_MIDDLEWARES", PolitenessMiddleware, 950)
    place("DOWNLOADER_MIDDLEWARES", AsFoundRedirectMiddleware, 600)
    place("ITEM_PIPELINES", WarcPipeline, 900)
    place("ITEM_PIPELINES", CapturesPipeline, 910)
    # The frontier is closed by `Closing`, after which nothing of it may be written.
    place("EXTENSIONS", FrontierWriter, -1)
    place("EXTENSIONS", Closing, 0)
    # Of several processes, the parent shows the progress of all.
    place("EXTENSIONS", Progress, None if is_child() else 0)
    place("EXTENSIONS", DiskRoom, 0)
    place("EXTENSIONS", StopConditions, 0)
    # What comes behind `Closing` finds files sealed and the finish reason known.
    place("EXTENSIONS", Control, 10)
    for path, number, is_wanted in (
        # Before anything can be written: it knows whether that may be.
        (REGISTERED["share extension"], -5, getattr(spider, "share", None)),
        ("amicrawl.crawl.processes.child.Process", -5, is_child()),
        # Before anything that opens the output: a directory that is another's is not touched.
        (REGISTERED["job extension"], -2, getattr(spider, "job", None) is not None),
        # Before the output is opened: without a browser, nothing is left behind.
        ("amicrawl.browser.visits.Browsing", -1, config.browser is not Rendering.NEVER),
        # Behind `Closing`, which has written down by then how the crawl ended.
        ("amicrawl.crawl.uploading.Uploading", 10, config.bucket),
        ("amicrawl.crawl.watching.metrics.MetricsEndpoint", 10, config.metrics),
        ("amicrawl.crawl.watching.webhooks.Webhooks", 20, config.webhooks),
    ):
        if is_wanted:
            _place(settings, "EXTENSIONS", path.replace(":", "."), number)


def _trim_to_archiving(settings: BaseSettings, headers: Headers) -> None:
    """Switch off in *settings* what only serves callbacks, and have *headers* sent by default."""
    settings.set("DEFAULT_REQUEST_HEADERS", default_headers(headers), "addon")
    for name, value in _WITHOUT_CALLBACKS.items():
        settings.set(name, value, "addon")
    if not getproxies():
        settings.set("HTTPPROXY_ENABLED", value=False, priority="addon")
    for components, paths in _FOR_CALLBACKS.items():
        _leave_out(settings, components, paths)


def _leave_out_replaced(settings: BaseSettings) -> None:
    """Take out of *settings* the components of Scrapy in whose place are ours."""
    for components, paths in _REPLACED.items():
        _leave_out(settings, components, paths)


def _leave_out_switched(settings: BaseSettings) -> None:
    """Take out of *settings* what is switched off: Scrapy would import it to find that out."""
    for switch, (components, path) in _SWITCHES.items():
        if not settings.getbool(switch):
            _leave_out(settings, components, {path})


def _leave_out(settings: BaseSettings, components: str, paths: Collection[str]) -> None:
    left = {key: place for key, place in settings.getdict(components).items() if key not in paths}
    settings.set(components, left, "addon")
