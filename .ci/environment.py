#!/usr/bin/env python3
"""Make `.venv` hold what a make target needs, from the lock file, with nothing but Python at hand.

    environment.py {run,dev,suite,spark} [--check] [--directory DIRECTORY]

`run` is what a crawl and queries of its table need, `dev` that and the tools of the tests, `suite` all
of it and what Scrapy's own tests need, `spark` the extra of that name and what runs its tests.

Once done, a stamp in the environment says for which lock file, project file and place it was done, so
that the next call ends at once; `--check` only tells, by its exit code, whether there is anything to do.
An environment that is half made, moved or made by a Python that is gone is made anew. Only the standard
library is used, and packages come from wherever pip and uv are configured to look: no host is named
here. Each is installed by its digest, from `.ci/bootstrap-requirements.txt` or `uv.lock`; amicrawl is
built with nothing else at hand.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOTSTRAP = Path(".ci") / "bootstrap-requirements.txt"
NEEDS = ("run", "dev", "suite")
"""Each has all that stands before it."""

_GROUPS = {
    "run": ["--no-dev", "--extra", "query"],
    "dev": ["--group", "dev"],
    "suite": ["--group", "dev", "--group", "scrapy-suite"],
    "spark": ["--no-dev", "--group", "spark"],
}


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


class Environment:
    """A virtual environment for the project in *root*, in *directory*."""

    def __init__(self, root: Path, directory: Path) -> None:
        self._root = root
        self._directory = directory
        self._python = self._directory / "bin" / "python"
        self._unfinished = self._directory / "amicrawl-unfinished"

    def is_ready(self, need: str) -> bool:
        """Tell whether everything for *need* is there, as the stamps say; `dev` includes `run`."""
        wanted = self._digest()
        sufficient = NEEDS[NEEDS.index(need) :] if need in NEEDS else (need,)
        return not self._unfinished.exists() and any(
            _text(self._stamp(each)) == wanted for each in sufficient
        )

    def make_ready(self, need: str) -> None:
        """Make or mend the environment so that `is_ready(need)` holds; raises SetupError."""
        fault = self.fault()
        if fault is not None:
            made_by = f"Python {sys.version.split()[0]} ({sys.executable})"
            _say(f"Making {self._directory.name} with {made_by}: {fault}.")
            self._create()
        elif self.is_ready(need):
            return
        self._unfinished.touch()
        for each in _GROUPS:
            self._stamp(each).unlink(missing_ok=True)
        self._install(need)
        self._stamp(need).write_text(self._digest())
        self._unfinished.unlink()

    def _stamp(self, need: str) -> Path:
        return self._directory / f"amicrawl-ready-{need}"

    def _digest(self) -> str:
        """Name all that the environment follows from; its place too, for the scripts in it name that."""
        seen = hashlib.sha256(f"{self._directory}\0".encode())
        for name in ("uv.lock", "pyproject.toml", BOOTSTRAP):
            seen.update((self._root / name).read_bytes())
        return seen.hexdigest()

    def fault(self) -> str | None:
        """Say why the environment cannot be built upon, or None where it can."""
        if not self._directory.exists():
            return "there is none"
        if self._unfinished.exists():
            return "its last set-up was interrupted"
        if str(self._directory) not in _text(self._directory / "bin" / "activate"):
            return "it was made in another place, or only in part"
        probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        if not _succeeds([str(self._python), "-c", probe]):
            return "its Python does not run, is too old or has no pip"
        return None

    def _create(self) -> None:
        _ensure_venv_module()
        if self._directory.is_symlink() or self._directory.is_file():
            self._directory.unlink()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
        self._unfinished.touch()
        # Not `venv.create`: in a process of its own, a part installed a moment ago is found.
        _run([sys.executable, "-m", "venv", str(self._directory)], "making the environment")

    def _install(self, need: str) -> None:
        python = str(self._python)
        _say("Installing uv and what builds amicrawl.")
        bootstrap = ["install", "--quiet", "--require-hashes", "-r", str(self._root / BOOTSTRAP)]
        _run([python, "-m", "pip", *bootstrap], "installing uv with pip")
        _say("Installing the locked packages; the first time takes a minute or two.")
        group = _GROUPS[need]
        sync = ["sync", "--frozen", "--inexact", "--quiet", "--python", python, *group]
        # Isolated, it would be built by whatever hatchling is newest that day.
        sync += ["--no-build-isolation-package", "amicrawl"]
        if not _succeeds(self._uv(sync), quiet=False):
            # The lock file names where each package was; a machine that reaches packages only through
            # its pip configuration (an internal index, a directory of wheels) gets the same ones there.
            _say("uv could not install them; trying with pip, which follows the pip configuration.")
            self._install_with_pip(group)

    def _install_with_pip(self, group: list[str]) -> None:
        pins = self._directory / "amicrawl-pins.txt"
        export = [
            "export",
            "--frozen",
            "--quiet",
            "--no-emit-project",
            "--output-file",
            str(pins),
            *group,
        ]
        _run(self._uv(export), "listing the locked packages")
        pip = [str(self._python), "-m", "pip", "install", "--quiet", "--no-deps"]
        _run([*pip, "--require-hashes", "-r", str(pins)], "installing the locked packages with pip")
        own = [*pip, "--no-build-isolation", "--editable", str(self._root)]
        _run(own, "installing amicrawl itself")

    def _uv(self, arguments: list[str]) -> list[str]:
        # Whatever else is said in the environment of the shell, this is the place.
        os.environ["UV_PROJECT_ENVIRONMENT"] = str(self._directory)
        return [str(self._directory / "bin" / "uv"), "--project", str(self._root), *arguments]


def _ensure_venv_module() -> None:
    """Debian ships Python without the part that makes environments: add it as root, else say how."""
    if importlib.util.find_spec("ensurepip") is not None:
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"{sys.executable} lacks the module ensurepip: install that part of Python, or name another "
            "Python as in 'make crawl PYTHON=/path/to/python3'."
        )
    command = f"apt-get install -y {package}"
    if os.geteuid() != 0:
        raise SetupError(
            f"{sys.executable} lacks the module ensurepip: run 'sudo {command}', then start again."
        )
    _say(f"Installing {package} with apt-get.")
    _run(["apt-get", "update", "-qq"], "updating the package lists")
    _run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", package], f"'{command}'")


def _environment_variables() -> dict[str, str]:
    """Ours, so that nothing that is active in the shell is mistaken for `.venv`."""
    return _DEFAULTS | {name: value for name, value in os.environ.items() if name not in _MISLEADING}


_MISLEADING = {
    "VIRTUAL_ENV",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_PYTHON",
    "UV_PROJECT",
}
_DEFAULTS = {
    "DEBIAN_FRONTEND": "noninteractive",
    # As pip does: a command that is started often must not compile what it imports each time.
    "UV_COMPILE_BYTECODE": "true",
    # A cache on another file system makes uv warn each time that it cannot link.
    "UV_LINK_MODE": "copy",
    "UV_PYTHON_DOWNLOADS": "never",
    # Whom the machine trusts: behind a company's proxy the certificates that uv carries do not do.
    "UV_SYSTEM_CERTS": "true",
}


def _succeeds(command: list[str], *, quiet: bool = True) -> bool:
    # Standard output belongs to the target that is being prepared.
    target = subprocess.DEVNULL if quiet else sys.stderr
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and every word is ours
            command,
            check=False,
            env=_environment_variables(),
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
        )
    except OSError:
        return False
    return done.returncode == 0


def _run(command: list[str], doing: str) -> None:
    if not _succeeds(command, quiet=False):
        raise SetupError(
            f"The set-up failed while {doing}; what is printed above says why. Mend it and start again."
        )


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Follow *arguments*; return the exit code."""
    parser = argparse.ArgumentParser(description="Make .venv hold what a make target needs.")
    parser.add_argument("need", choices=_GROUPS)
    parser.add_argument(
        "--check", action="store_true", help="only tell by the exit code whether it is ready"
    )
    parser.add_argument(
        "--directory", type=Path, default=ROOT / ".venv", help="another place than .venv"
    )
    options = parser.parse_args(arguments)
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever names a Python may name an old one
        _say(f"{sys.executable} is Python {sys.version.split()[0]}; name one that is 3.11 or newer.")
        return 1
    environment = Environment(ROOT, options.directory.absolute())
    if options.check:
        return 0 if environment.is_ready(options.need) else 1
    with (ROOT / "uv.lock").open() as lock:
        # Two targets started at once must not build on each other's half.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            environment.make_ready(options.need)
        except SetupError as error:
            _say(str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
