"""The processes of one crawl are forks of their parent that have nothing of it but what is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from loopback import PROJECT, environment

if TYPE_CHECKING:
    from pathlib import Path

_PARENT = """
import asyncio, json, os, signal, socket, sys
from amicrawl.crawl.processes.child import fork

async def parent():
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: None)
    loop.add_signal_handler(signal.SIGUSR1, lambda: None)
    others = [socket.socketpair() for _ in range(3)]
    ours, theirs = others[1]

    def act():
        try:
            asyncio.get_running_loop()
            runs = True
        except RuntimeError:
            runs = False
        made = asyncio.new_event_loop()
        asyncio.set_event_loop(made)
        said = {
            "open": sorted(int(name) for name in os.listdir("/proc/self/fd")),
            "keep": theirs.fileno(),
            "leads": os.getsid(0) == os.getpid(),
            "signals": [signal.getsignal(number) is signal.SIG_DFL for number in (15, signal.SIGUSR1)],
            "hangup": signal.getsignal(signal.SIGHUP) is signal.SIG_IGN,
            "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            "runs": runs,
            "own": made.run_until_complete(asyncio.sleep(0, "ran")),
            "input": sys.stdin.read(),
        }
        made.close()
        theirs.sendall(json.dumps(said).encode())
        print("logged", file=sys.stderr)
        sys.exit(7)

    log, stderr = os.pipe()
    process = fork(act, keep=theirs.fileno(), stderr=stderr)
    os.close(stderr)
    theirs.close()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with open(log) as lines:
        print(json.dumps(json.loads(ours.recv(65536)) | {"code": code, "log": lines.read()}))

signal.signal(signal.SIGHUP, signal.SIG_IGN)
asyncio.run(parent())
"""

_PREPARED = """
import json, os, sys
import amicrawl.settings
from amicrawl.crawl.processes import child, parent
before = os.listdir("/proc/self/fd")
child.prepare_forks()
print(json.dumps({
    "threads": len(os.listdir("/proc/self/task")),
    "reactor": "twisted.internet.reactor" in sys.modules,
    "opened": len(os.listdir("/proc/self/fd")) - len(before),
}))
"""


def said_by(program: str, directory: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        env={**environment(), "PYTHONPATH": str(PROJECT), "SCRAPY_SETTINGS_MODULE": "amicrawl.settings"},
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_fork_has_nothing_of_its_parent_but_the_socket_and_the_log(tmp_path: Path) -> None:
    said = said_by(_PARENT, tmp_path)
    # The last is that of the listing.
    assert said["open"][:3] == [0, 1, 2]
    assert said["keep"] in said["open"]
    own_loop_and_listing = {number for number in said["open"] if number not in {0, 1, 2, said["keep"]}}
    assert len(own_loop_and_listing) == 4, "a selector, a pair of sockets and the listing itself"
    assert said["leads"]
    assert said["signals"] == [True, True]
    assert said["hangup"], "what came ignored stays ignored"
    assert (said["blocked"], said["runs"], said["own"], said["input"]) == (0, False, "ran", "")
    assert (said["code"], said["log"]) == (7, "logged\n")


def test_what_is_imported_for_forks_starts_no_thread_and_no_loop(tmp_path: Path) -> None:
    assert said_by(_PREPARED, tmp_path) == {"threads": 1, "reactor": False, "opened": 0}
