"""A disk that is only written to while the lease is good."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import OutputError
from amicrawl.fleet.leases.lease_time import HeldLease
from amicrawl.fleet.leases.leased import FENCE, Fence, LeasedDisk, LeaseLost, raise_fence

if TYPE_CHECKING:
    from collections.abc import Callable


class Lease(HeldLease):
    """A lease that a test gives and takes."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(10.0, clock=lambda: self.now, renewed=0.0)

    def run_out(self) -> None:
        self.now += 10.0

    def renew(self) -> None:
        self._renewed(self.now)


def disk_in(directory: Path, lease: Lease, *, token: int = 5, patient: bool = False) -> LeasedDisk:
    return LeasedDisk(lease, Fence(directory, "abc", token), patient=patient)


def test_a_file_is_written_while_the_lease_is_held(tmp_path: Path) -> None:
    file = OutputFile(tmp_path / "a", disk=disk_in(tmp_path, Lease()))
    file.write(b"abc")
    file.seal()
    assert (tmp_path / "a").read_bytes() == b"abc"


def test_between_two_writes_the_lease_is_looked_at_again(tmp_path: Path) -> None:
    lease = Lease()
    file = OutputFile(tmp_path / "a", disk=disk_in(tmp_path, lease))
    file.write(b"abc")
    lease.lose("taken over")
    with pytest.raises(OutputError, match="the lease was lost: taken over"):
        file.write(b"def")
    with pytest.raises(OutputError):
        file.seal()
    file.close()
    assert (tmp_path / "a.open").read_bytes() == b"abc"


def test_who_is_patient_waits_for_the_lease_and_the_event_loop_does_not(tmp_path: Path) -> None:
    lease = Lease()
    disk = disk_in(tmp_path, lease, patient=True)
    lease.run_out()
    with pytest.raises(OSError, match="the lease has run out"):
        disk.create(tmp_path / "now")
    written = threading.Event()

    def write() -> None:
        file = OutputFile(tmp_path / "later", disk=disk)
        file.seal()
        written.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert not written.wait(0.2)
    assert not (tmp_path / "later.open").exists()
    lease.renew()
    thread.join(60)
    assert (tmp_path / "later").exists()


def test_the_event_loop_waits_for_a_lease_that_is_renewed_although_it_does_not_turn(
    tmp_path: Path,
) -> None:
    lease = Lease()
    lease.run_out()
    lease.grant(60.0)
    renewal = threading.Timer(0.05, lease.renew)
    renewal.start()
    disk_in(tmp_path, lease, patient=True).permit()
    renewal.join()
    assert lease.is_held


def test_a_change_fails_on_any_thread_where_nobody_is_patient(tmp_path: Path) -> None:
    lease = Lease()
    lease.run_out()
    with (
        ThreadPoolExecutor(1) as thread,
        pytest.raises(OSError, match="the lease has run out"),
    ):
        thread.submit(disk_in(tmp_path, lease).permit).result(60)


class Noted:
    """Stands for a disk: notes each call with its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: self.calls.append((name, *given))


ONE, OTHER = Path("one"), Path("other")
CHANGES: dict[str, tuple[Any, ...]] = {
    "create": (ONE,),
    "write": (3, b"x"),
    "write_at": (3, b"x", 7),
    "truncate": (ONE, 1),
    "rename": (ONE, OTHER),
    "link": (ONE, OTHER),
    "remove": (ONE,),
    "reserve": (3, 0, 10),
}
OTHERS: dict[str, tuple[Any, ...]] = {
    "open_special": (ONE,),
    "sync": (3,),
    "sync_directory": (ONE,),
    "temporary": (ONE,),
}


def test_every_call_of_a_disk_is_known_to_change_something_or_not() -> None:
    calls = {name for name, each in vars(Disk).items() if callable(each) and not name.startswith("_")}
    assert calls == {"permit", *CHANGES, *OTHERS}


@pytest.mark.parametrize("name", [*CHANGES, *OTHERS])
def test_nothing_is_changed_once_the_lease_is_lost(tmp_path: Path, name: str) -> None:
    lease, noted = Lease(), Noted()
    disk = LeasedDisk(lease, Fence(tmp_path, "abc", 5), patient=True, disk=cast("Disk", noted))
    given = (CHANGES | OTHERS)[name]
    getattr(disk, name)(*given)
    assert noted.calls == [(name, *given)]
    lease.lose("taken over")
    if name in CHANGES:
        with pytest.raises(OSError, match="taken over"):
            getattr(disk, name)(*given)
    else:
        getattr(disk, name)(*given)
    assert noted.calls == [(name, *given)] * (1 if name in CHANGES else 2)


def test_a_newer_fence_loses_the_lease(tmp_path: Path) -> None:
    lease = Lease()
    disk = disk_in(tmp_path, lease)
    raise_fence(tmp_path, "abc", 5, disk=Disk())
    disk.remove(tmp_path / FENCE)
    raise_fence(tmp_path, "abc", 6, disk=Disk())
    with pytest.raises(OSError, match="newer owner"):
        disk.create(tmp_path / "a")
    assert "newer owner" in lease.lost


def test_an_older_claim_puts_up_no_fence(tmp_path: Path) -> None:
    Fence(tmp_path, "abc", 7).put_up(disk=Disk())
    Fence(tmp_path, "abc", 7).put_up(disk=Disk())
    with pytest.raises(LeaseLost):
        Fence(tmp_path, "abc", 6).put_up(disk=Disk())
    (tmp_path / FENCE).write_bytes(b"\xff{")
    assert Fence(tmp_path, "abc", 6).newer() == ""
