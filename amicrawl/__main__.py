"""The command `amicrawl`, which is `python -m amicrawl` as well.

What a command is made of takes half a second to import: a signal in that time ends the process with a
sentence, and not by an exception in the middle of an import. Each command then says what a signal does.
"""

import os
import signal

_STOPPED = 6  # `ExitCode.STOPPED`: its module is yet to be imported


def _end(*_: object) -> None:
    os.write(2, b"amicrawl: Stopped before the command began. Nothing was done.\n")
    os._exit(_STOPPED)


def main() -> None:
    """Run the command line of this process and exit."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    # What started this process may have held them back until now (`interpreter.signals_for_later`).
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    from amicrawl.cli import main as run  # noqa: PLC0415  # see above

    run()


if __name__ == "__main__":
    main()
