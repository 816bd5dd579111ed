"""What holds for every test."""

import gc
import os
import re
import signal
import zlib
from collections.abc import Generator
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

LONGEST = (
    "jobs/test_operators_day.py",
    "journeys",
    "crash",
    "contract",
    "jobs/test_two_pipelines.py",
    "index/test_spark_index.py",
    "table/test_spark_table.py",
    "deployment/test_scrapyd.py",
    "browser",
    "jobs/test_job_campaign.py",
    "hostile/bombs",
    "replay",
    "guests/test_guest_pace.py",
    "jobs/test_share_failures.py",
    "jobs/test_many_workers.py",
    "dashboard/test_browser_whole_way.py",
    "dashboard/test_browser_many_jobs.py",
    "dashboard/test_watch.py",
    "guests/test_browser.py",
    "index/test_foreign_collections.py",
    "frontier/test_rows_that_move.py",
)
"""What takes longest, or waits longest, by path below `tests`: it is begun first."""

SLOW = (
    "cli/test_quiet_option.py",
    "crawl/test_pace_over_kills.py",
    "dashboard/test_finished_summaries.py",
    "discovery/test_coding.py",
    "discovery/test_links.py",
    "fetch/test_fetch_many.py",
    "fetch/test_fetch_raw_reader.py",
    "fetch/test_fetch_wire.py",
    "meguri/format/test_damaged_files.py",
    "meguri/format/test_dump.py",
    "meguri/format/test_golden_files.py",
    "meguri/format/test_hostile_files.py",
    "meguri/format/test_reading_little.py",
    "meguri/format/test_streaming.py",
    "meguri/format/test_value_encodings.py",
    "frontier/live/test_live_partition.py",
    "frontier/live/test_resident_memory.py",
    "frontier/live/test_string_arena.py",
    "meguri/seen/test_bloom.py",
    "meguri/seen/test_key_index.py",
    "frontier/test_due_wheel.py",
    "guests",
    "hostile",
    "index/test_archive_records.py",
    "index/test_block_join.py",
    "index/test_location.py",
    "index/test_merge.py",
    "index/test_numerals.py",
    "politeness/test_pace_simulation.py",
    "project/test_doors.py",
    "project/test_one_meaning.py",
    "record/test_captures_table.py",
    "record/test_repair.py",
    "report/test_chart_pictures.py",
    "report/test_spark_summary.py",
    "report/test_summary_adds_up.py",
    "report/test_summary_rows.py",
    "seed/test_seed_memory.py",
    "table/test_block_rows.py",
    "table/test_make_table.py",
    "table/test_queries.py",
    "table/test_queries_own_sql.py",
    "table/test_table_writer.py",
    "uploads/test_item_bucket.py",
    "uploads/test_rsync_bucket.py",
)
"""What takes more than two seconds of CPU a file, by path below `tests`."""

_STARTS_PROCESSES = frozenset(
    {
        *("subprocess", "multiprocessing", "warm_processes", "RedisServer", "RawServer"),
        *("shared_redis", "redis_server", "browser", "confined"),
    }
)
"""What a test module imports, or a test has as a fixture, that starts processes or crawls."""

_IMPORT = re.compile(r"^(?:from|import) [^(\n]*(?:\([^)]*\))?", re.MULTILINE)
_NAME = re.compile(r"\w+")


# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C. Some
# tests interrupt what they have started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long it takes to make an example, and to try it, says more of the machine's other work than of the
# code. `make test` tries the same examples each time; `make fuzz` searches for others.
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("search", deadline=None, max_examples=300, suppress_health_check=_SLOW)
settings.register_profile("same", settings.get_profile("search"), derandomize=True, max_examples=60)
settings.load_profile("same")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name packed parameters alike in every process: gzip puts the time into what it packs."""
    return "gzip" if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


@cache
def _below(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()


@cache
def _place(path: Path, places: tuple[str, ...]) -> int | None:
    path_below = f"{_below(path)}/"
    return next((n for n, each in enumerate(places) if path_below.startswith(f"{each}/")), None)


@cache
def _is_slow(path: Path) -> bool:
    """Return whether all tests of the module or folder at *path* are."""
    if _place(path, LONGEST + SLOW) is not None:
        return True
    if path.suffix != ".py":
        return False
    names = {name for line in _IMPORT.findall(path.read_text()) for name in _NAME.findall(line)}
    return not _STARTS_PROCESSES.isdisjoint(names)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing for `make quick` whose tests it would leave out."""
    is_quick = config.getoption("markexpr") == "not slow"
    return True if is_quick and _is_slow(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and deal tests so that those that wait run beside those that compute.

    Workers get stretches of equal length, and steal from the end of one another's. What is begun last
    holds up the end, so half of the workers begin with what takes longest, most of which waits. The
    other files are mixed: in the order of their names, the rooms that wait would come together.
    """
    longest: dict[tuple[int, str], list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        place = _place(item.path, LONGEST)
        fixtures = item.fixturenames if isinstance(item, pytest.Function) else ()
        if _is_slow(item.path) or not _STARTS_PROCESSES.isdisjoint(fixtures):
            item.add_marker("slow")
        if place is None:
            others.append(item)
        else:
            longest.setdefault((place, str(item.path)), []).append(item)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        others.sort(key=lambda item: zlib.crc32(_below(item.path).encode()))
    first: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for number, (_, group) in enumerate(sorted(longest.items(), key=lambda each: each[0])):
        first[number % ((workers + 1) // 2)] += group
    rest, left, ordered = iter(others), len(items), []
    for number, begun in enumerate(first):
        length = left // (workers - number)
        ordered += [*begun, *islice(rest, max(0, length - len(begun)))]
        left -= length
    items[:] = [*ordered, *rest]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have Python look for no garbage among what is collected, neither then nor later: it all stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class _Told:
    """Says at once what failed: a run that is ended from outside comes to no summary."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(getattr(crash, "message", report.longrepr)).partition("\n")[0]
            self._terminal.write_line(f"\n{report.when} of {report.nodeid}: {why[:300]}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if config.getoption("numprocesses", None) and terminal is not None:
        config.pluginmanager.register(_Told(terminal))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--roads", action="store_true", help="run every crawl test of tests/crawl by both roads"
    )


_IGNORED = {"ami-out", "build", "dist"}


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_written_beside_the_project() -> Generator[None]:
    """Fail where a test, or a command that it ran, left a file at the repository's top."""
    before = {path.name for path in TESTS.parent.iterdir()}
    yield
    after = {path.name for path in TESTS.parent.iterdir() if not path.name.startswith(".")}
    left = after - before - _IGNORED
    assert not left, f"written into the folder of the project by a test of this run: {sorted(left)}"


@pytest.fixture
def hangup_counts() -> Generator[None]:
    """Start children for which a closed terminal counts, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
