"""Processes of `python -m scrapy`, of `amicrawl` and of scripts that need not import everything first.

A crawl of three pages takes a second to start and a twentieth of one to run. So one process imports what
all of them need, and each command is a fork of it: with a process ID, an environment, a directory,
arguments and streams of its own, and a child of the test like any other, to be signalled, killed and
waited for. What a fork cannot be is started as usual: another program or interpreter, another locale,
other settings of the interpreter, anything to be done before it runs.

`Popen` and `run` are those of `subprocess` but for that.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT = Path(__file__).parents[1]
START = "amicrawl.crawl.start"
"""The module that is `scrapy crawl` without the rest of Scrapy's command line."""
SOURCE = "tests-source"
"""The name of a process below another one, whose forks are the crawls that that one starts."""
_STARTS_CRAWLS = frozenset({"pipeline", "share"})
"""The commands of amicrawl that do."""
MODULES = frozenset({"scrapy", "amicrawl", START})
SCRIPT = str(Path(sys.executable).with_name("amicrawl"))
_BY_PACKAGE = {
    "amicrawl": "cli crawlfile.lines fetch.name_servers fetch.tls record.table seed.parquet",
    "amicrawl.archive": "report.figures",
    "amicrawl.cli": "archive_files crawl crawl_facts frontier index inspect job pipeline share summary",
    "amicrawl.crawl": "addon downloader following handler pipelines run scheduler",
    "amicrawl.crawl.commands": "crawl genspider",
    "amicrawl.crawl.guest": "downloader settings",
    "amicrawl.crawl.processes": "child parent",
    "amicrawl.fleet.jobs.crawl": "joblink opening",
    "amicrawl.discovery": "coding selection",
    "amicrawl.fleet.database": "connection",
    "amicrawl.fleet.leases": "lease",
    "amicrawl.spiders": "queue recrawl seeds site",
    "encodings": "charmap idna",
    "itemadapter": "adapter",
    "lxml": "html",
    "numpy": "ma",
    "pyarrow": "compute parquet",
    "rich": "console",
    "scrapy": "cmdline dupefilters exporters pqueues squeues statscollectors",
    "scrapy.commands": (
        "bench check fetch genspider list parse runspider settings shell startproject version view"
    ),
    "scrapy.core": "engine downloader.handlers.datauri downloader.handlers.file",
    "scrapy.core.downloader.handlers": "ftp http11 s3",
    "scrapy.downloadermiddlewares": "cookies httpcache httpproxy retry stats",
    "scrapy.extensions": (
        "closespider logcount logstats memdebug memusage remote_control spiderstate telnet throttle"
    ),
    "scrapy.spidermiddlewares": "httperror",
    "scrapy.utils": "test",
    "twisted.web": "client",
}
PRELOADED = (
    *(f"{package}.{name}" for package, names in _BY_PACKAGE.items() for name in names.split()),
    *("isal.igzip", "prometheus_client", "psutil", "pycares", "pydantic.type_adapter", "redis"),
    *("scrapy_redis", "tomllib", "typer._adapters", "unittest", "uvloop"),
)
"""What is imported before the forks. Nothing that reads the environment while it is imported."""

_NOT_PRELOADED = ("twisted.internet.reactor", "amicrawl.settings")
_OF_THE_INTERPRETER = ("PYTHON", "TERM", "LANG", "LC_", "LD_", "MALLOC", "ARROW", "OMP_")
_OF_NO_MATTER = frozenset({"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"})
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NAME = 15
_NUMBER = struct.Struct("!q")
_given = inspect.signature(subprocess.Popen._execute_child).bind  # type: ignore[attr-defined]


class Popen(subprocess.Popen[Any]):
    """A process that is forked where it can be."""

    def _execute_child(self, *arguments: Any) -> None:
        given = _given(self, *arguments).arguments
        line, environment = given["args"], given["env"]
        environment = dict(os.environ if environment is None else environment)
        group = given.get("process_group", -1)
        is_odd = (
            given["preexec_fn"] or given["pass_fds"] or given["shell"] or given["executable"]
        ) or group not in {-1, 0}
        if is_odd or not _is_forkable(line, environment):
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        ends = (given["p2cread"], given["c2pwrite"], given["errwrite"])
        request = {
            "line": [os.fspath(word) for word in line[_begin(line) :]],
            "options": [word for word in line[1:2] if word == "-P"],
            "directory": str(Path(os.fsdecode(given["cwd"] or ".")).absolute()),
            "environment": environment,
            "in_session": bool(given["start_new_session"]),
            "in_group": group == 0,
            "is_under_nohup": signal.getsignal(signal.SIGHUP) is signal.SIG_IGN,
        }
        self.pid = _source().fork(request, [end if end >= 0 else n for n, end in enumerate(ends)])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


def run(
    line: Sequence[Any],
    *,
    input: Any = None,  # noqa: A002 - the name that subprocess has
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **keywords: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run *line* to its end, as `subprocess.run` does."""
    if input is not None:
        keywords["stdin"] = subprocess.PIPE
    if capture_output:
        keywords["stdout"] = keywords["stderr"] = subprocess.PIPE
    with Popen(line, **keywords) as process:
        try:
            stdout, stderr = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
    if check:
        done.check_returncode()
    return done


def _is_forkable(line: Any, environment: Mapping[str, str]) -> bool:
    if not sys.platform.startswith("linux") or not isinstance(line, list):
        return False
    if not _is_of_a_module(line) and os.fspath(line[0]) != SCRIPT and not _is_of_a_script(line):
        return False
    return _interpreter_settings(environment) == _interpreter_settings(os.environ)


def _is_of_a_module(line: Sequence[Any]) -> bool:
    options, named = (2, 3) if line[1:2] == ["-P"] else (1, 2)
    return bool(line[0] == sys.executable and line[options] == "-m") and line[named] in MODULES


def _is_of_a_script(line: Sequence[Any]) -> bool:
    return bool(line[0] == sys.executable) and os.fspath(line[1]).endswith(".py")


def _begin(line: Sequence[Any]) -> int:
    """Return where in *line* the arguments of the program begin, of which the first is its name."""
    if os.fspath(line[0]) == SCRIPT:
        return 0
    return 1 if _is_of_a_script(line) else line.index("-m") + 1


def _interpreter_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_OF_THE_INTERPRETER) and name not in _OF_NO_MATTER
    }


class _Source:
    """The process that others are forks of, at the other end of *channel*; it ends with this one."""

    def __init__(self, channel: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self._lock = threading.Lock()
        self._channel = channel
        self._process = process

    def fork(self, request: Mapping[str, Any], streams: list[int]) -> int:
        """Return the ID of a new process, a child of this one, that has *streams* as its first three."""
        message = json.dumps(request).encode()
        with self._lock:
            _adopt_orphans(True)
            try:
                socket.send_fds(self._channel, [_NUMBER.pack(len(message))], streams)
                self._channel.sendall(message)
                response = self._channel.recv(_NUMBER.size, socket.MSG_WAITALL)
            finally:
                _adopt_orphans(False)
        if len(response) < _NUMBER.size:
            raise RuntimeError("The process that tests fork crawls from has ended.")
        (process,) = _NUMBER.unpack(response)
        return int(process)


_sources: list[_Source] = []


def _source() -> _Source:
    if not _sources:
        channel, theirs = socket.socketpair()
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=PROJECT,
                env=environment,
            )
        _sources.append(_Source(channel, process))
    return _sources[0]


def _adopt_orphans(whether: bool) -> None:
    """Have descendants whose parent has ended become children of this process, or have them not."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0)


def _serve(channel: socket.socket) -> dict[str, Any]:
    """Fork for each request that comes over *channel*; return only in a fork, its request."""
    while True:
        size, streams, _, _ = socket.recv_fds(channel, _NUMBER.size, 3)
        if not size:
            os._exit(0)
        (length,) = _NUMBER.unpack(size)
        message = channel.recv(length, socket.MSG_WAITALL)
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            child = os.fork()
            if child:
                if b'"in_group": true' in message:
                    os.setpgid(child, child)  # before anybody can signal the group
                os.write(writing, _NUMBER.pack(child))
                os._exit(0)
            os.close(reading)
            os.close(writing)
            channel.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            os.closerange(3, max(streams) + 1)
            return dict(json.loads(message))
        for stream in (*streams, writing):
            os.close(stream)
        # Once the process between has ended, its child is a child of whoever adopts orphans.
        os.waitpid(between, 0)
        channel.sendall(os.read(reading, _NUMBER.size))
        os.close(reading)


def _served_below(request: dict[str, Any]) -> dict[str, Any]:
    """Have a source below this process, too, whose forks become its children; return only in those.

    Returns *request* in this process itself, which starts crawls: pipelines and workers do.
    """
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        _sources.append(_Source(ours))
        subprocess.Popen = Popen  # type: ignore[misc]
        return request
    ours.close()
    # What ends, interrupts or counts the crawls of that process is not to mean this one.
    os.setsid()
    name = Path("/proc/self/comm").read_bytes().strip()
    _take_name(SOURCE.encode())
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)
    request = _serve(theirs)
    _take_name(name)
    return request


def _take_name(name: bytes) -> None:
    """Be shown as *name* in lists of processes."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name, 0, 0, 0)


def _become(request: Mapping[str, Any], path: Sequence[str]) -> None:
    """Make this process what the interpreter would be for the line of *request*."""
    if request["in_session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_IGN if request["is_under_nohup"] else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["directory"])
    further = os.environ.get("PYTHONPATH", "")
    sys.argv[:] = request["line"]
    is_path = _is_path(sys.argv[0])
    first = str(Path(sys.argv[0]).parent.absolute()) if is_path else request["directory"]
    firsts = [] if request["options"] else [first]
    sys.path[:] = [*firsts, *filter(None, further.split(os.pathsep)), *path]
    # What starts itself anew does so with the whole line.
    sys.orig_argv[:] = [sys.executable, *request["options"], *([] if is_path else ["-m"]), *sys.argv]
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        was = getattr(sys, f"__{name}__")
        buffering = 1 if number == 2 or os.isatty(number) else -1
        stream = open(  # noqa: SIM115 - it ends with the process
            number, "w" if number else "r", buffering, was.encoding, was.errors, closefd=False
        )
        if number and unbuffered:
            stream.reconfigure(write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


class _WithoutPandas:
    """Finds no pandas, as in an installation of amicrawl alone; the tests have it for readers of others.

    Arrow looks for it where it makes an array of a list, and takes a sixth of a second to import it.
    """

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def _main() -> str:
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    path = list(sys.path)
    sys.path.insert(0, str(PROJECT))
    # What is installed is the same for all forks, and takes a fifth of a short crawl to read.
    metadata.entry_points = cache(metadata.entry_points)  # type: ignore[assignment]
    metadata.version = cache(metadata.version)
    sys.meta_path.insert(0, _WithoutPandas())
    for name in PRELOADED:
        # One that has moved costs time, not every test; tests/project/test_warm_processes.py names it.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    metadata.entry_points(group="scrapy.commands")
    for reading in ("scrapy.utils.versions.get_versions", "amicrawl.crawl.output._versions"):
        module, _, function = reading.rpartition(".")
        getattr(sys.modules[module], function)()
    found = [name for name in _NOT_PRELOADED if name in sys.modules]
    assert not found, f"{found} must be imported by the forks only"
    assert threading.active_count() == 1, "a process with threads cannot be forked safely"
    gc.collect()
    gc.freeze()
    request = _serve(channel)
    if not _STARTS_CRAWLS.isdisjoint(request["line"][1:2]):
        request = _served_below(request)
    _become(request, path)
    return str(request["line"][0])


def _is_path(program: str) -> bool:
    return program == SCRIPT or program.endswith(".py")


def _run(program: str) -> int:
    """Run *program*, and return the status that the interpreter would end with."""
    try:
        if _is_path(program):
            runpy.run_path(program, run_name="__main__")
        else:
            sys.modules.pop(program, None)  # it is there for those that import it, too
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _program = _main()
    _status = _run(_program)
    # As the interpreter ends, but that modules are not cleared, which would write to all shared memory.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if _program.endswith(".py"):
        gc.collect()  # with a Deferred goes the word on its error
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(_status)  # the interpreter has a sentence and a status for it
    os._exit(_status & 0xFF)
