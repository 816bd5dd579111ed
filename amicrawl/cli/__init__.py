"""The command `amicrawl`: everything around the crawl. One module per command.

Each option is declared once, as an `Annotated` type with its names, its help and its bounds: above the
command that has it, or, where several have it, in `options`, `file_work`, `archive_files` or
`redis_options`. Options that belong together are the fields of a dataclass, which the command takes as
one argument (`options.grouped`).

A command parses, calls one function of a room, and prints. What goes wrong on purpose is said in a
sentence on standard error, and the exit code says whose fault it was (`docs/exit-codes.md`).
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from amicrawl import __version__
from amicrawl.cli.commands import COMMANDS, GROUPS, ListedCommand, end_at_interrupt, is_plain
from amicrawl.errors import AmicrawlError, ExitCode, is_want_of_memory
from amicrawl.interpreter import prepare_interpreter
from amicrawl.invalid import nearest
from amicrawl.terminal import harmless, keep_standard_streams


class _CommandList(TyperGroup):
    """Lists the commands without loading them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer calls it so
        return [name for name, place in COMMANDS.items() if place.is_listed]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS:
            return ListedCommand(cmd_name)
        if meant := nearest(cmd_name, COMMANDS):
            ctx.fail(f"No such command '{cmd_name}'. Did you mean {meant}?")
        return None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by group; for plain text, where typer lists them in a row."""
        for group in dict.fromkeys(GROUPS.values()):
            names = [name for name in self.list_commands(ctx) if GROUPS[name] == group]
            with formatter.section(group):
                formatter.write_dl([(name, COMMANDS[name].sentence) for name in names])


app = typer.Typer(
    cls=_CommandList,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None if is_plain() else "rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="An archival crawler on Scrapy. To crawl: amicrawl crawl https://example.org/",
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it so
    if wanted:
        typer.echo(f"amicrawl {__version__}")
        raise typer.Exit


@app.callback()
def _amicrawl(
    version: Annotated[  # its callback has done the work
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before any command."""


_NO_MEMORY = (
    "No memory was left for this command. Give the process more memory (ulimit -v, the limit of "
    "its container), then run the same command again."
)


def main() -> None:
    """Run the command line of this process and exit."""
    prepare_interpreter()
    keep_standard_streams()
    # Behind this Python drops its handlers, and the signal would end the process in place of the code.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        _run()
    except AmicrawlError as error:
        sys.stderr.write(f"amicrawl: {error}\n")
        sys.exit(error.exit_code)
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        if (code := _explained(error)) is None:
            raise
        sys.exit(code)
    except SystemExit as end:
        # Ctrl-C, of which typer makes a code of its own.
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _exit_stopped()
        # The reader behind a pipe has had enough, of which typer makes an error.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _drop_output()
        sys.exit(ExitCode.DONE)
    except KeyboardInterrupt:
        _exit_stopped()


def _run() -> None:
    """Run the command; from then on Ctrl-C ends the process at once."""
    try:
        app()
    finally:
        end_at_interrupt()


def _exit_stopped() -> NoReturn:
    sys.stderr.write("\namicrawl: Stopped. No partial file has its final name; run the command again.\n")
    sys.exit(ExitCode.STOPPED)


def _explained(error: Exception) -> ExitCode | None:
    """Say what *error* of the system is, and return the exit code for it; None where it is a fault."""
    if is_want_of_memory(error):
        sys.stderr.write(f"amicrawl: {_NO_MEMORY}\n")
        return ExitCode.OUTPUT
    if not isinstance(error, OSError):
        return None
    if error.filename is None and _output_fails():
        _drop_output()
        sys.stderr.write(
            f"amicrawl: Standard output cannot be written: {error.strerror}. Make room where it goes, "
            "or send it elsewhere, and run the same command again.\n"
        )
        return ExitCode.OUTPUT
    # To find out whether a file is there can fail anywhere, as below a directory that is not ours.
    if isinstance(error.filename, str | bytes):
        name = harmless(os.fsdecode(error.filename))
        sys.stderr.write(
            f"amicrawl: {name} cannot be used: {error.strerror}. Check the path and who may use it.\n"
        )
        return ExitCode.INPUT
    return None


def _output_fails() -> bool:
    """Tell whether standard output cannot be written."""
    try:
        # Unbuffered, it has forgotten what it could not write.
        print(flush=True)
    except OSError:
        return True
    return False


def _drop_output() -> None:
    """Send the rest of standard output nowhere: Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
