"""Importance: which of two URLs comes first, as far as links and imported scores can tell.

    OPIC      every page hands the cash it was given on to the pages it links to, and remembers it
              (Abiteboul, Preda and Cobena, 2003)
    imports   a page rank and a host score from elsewhere, if the frontier was given any
    blend     one number of these, less for pages far from the seeds and for hosts suspected of traps

A crawl of a plain list uses none of this: then the priority of a row is what its seed says. Numbers are
of single precision, as frontier files hold them, and every step is rounded as single precision rounds,
so that two crawls that saw the same come to the same order. An imported score may be anything; what is
no positive number counts as 0.
"""

from __future__ import annotations

from array import array
from ctypes import c_float
from dataclasses import dataclass
from enum import Enum
from math import log, log1p, log2

_U32 = 0xFFFF_FFFF
_BUCKETS = 64
_LEVELS_AN_OCTAVE = 4


def single(value: float) -> float:
    """Return *value* rounded to single precision."""
    return c_float(value).value


@dataclass(frozen=True, slots=True)
class ImportanceParams:
    """How the parts of importance are weighed."""

    discount: float = 0.9998
    """What is left of a page's history with each capture."""
    teleport: float = 0.15
    """The share of cash that goes to all pages alike."""
    log_norm: float = 1.0
    rank_weight: float = 0.6
    opic_weight_with_rank: float = 0.25
    host_weight_with_rank: float = 0.15
    opic_weight: float = 0.7
    host_weight: float = 0.3
    base_budget: int = 64
    """URLs that a host may have which nobody links to."""
    budget_per_host: int = 16
    """URLs more for each host that links there."""
    min_budget: int = 16
    max_budget: int = 2**20
    trap_factor: float = 0.1
    depth_decay: float = 0.95


DEFAULTS = ImportanceParams()


class Opic:
    """Cash and history of each row, by its number; 9 bytes a row, whether it has any or not."""

    __slots__ = (
        "_cash",
        "_discount",
        "_has_state",
        "_history",
        "_known",
        "_log_norm",
        "_pool",
        "_share",
    )

    def __init__(self, params: ImportanceParams = DEFAULTS) -> None:
        self._discount = single(params.discount)
        self._share = single(params.teleport)
        self._log_norm = params.log_norm
        self._cash = array("f")
        self._history = array("f")
        self._has_state = bytearray()
        self._known = 0
        self._pool = 0.0
        """Cash of all pages alike."""

    @property
    def known(self) -> int:
        """The number of rows that have been given or have handed on anything."""
        return self._known

    def knows(self, row: int) -> bool:
        """Tell whether *row* has been given or has handed on anything."""
        return row < len(self._has_state) and self._has_state[row] != 0

    @property
    def alike(self) -> float:
        """What the cash of all pages alike adds to each."""
        return single(self._pool / self._known) if self._known else 0.0

    def seed(self, row: int, cash: float) -> None:
        """Endow *row* with *cash*."""
        self._touch(row)
        self._cash[row] = single(self._cash[row] + cash)

    def credit(self, row: int, weight: float) -> None:
        """Give *row* what a link to it carries; nothing where that is not positive."""
        if weight > 0:
            self.seed(row, weight)

    def distribute(self, row: int, links: int) -> float:
        """Take the cash of *row*, a page that was captured, and return what each of its *links* carries.

        A page without links gives everything to all pages alike.
        """
        self._touch(row)
        cash = self._cash[row]
        self._history[row] = single(single(self._history[row] * self._discount) + cash)
        self._cash[row] = 0.0
        if links <= 0:
            self._pool = single(self._pool + cash)
            return 0.0
        cut = single(cash * self._share)
        self._pool = single(self._pool + cut)
        return single(single(cash - cut) / links)

    def score(self, row: int) -> float:
        """Return the importance of *row*, not negative."""
        history = cash = 0.0
        if row < len(self._cash):
            history, cash = self._history[row], self._cash[row]
        return single(log(1 + single(single(history + cash) + self.alike)) / self._log_norm)

    def _touch(self, row: int) -> None:
        missing = row + 1 - len(self._cash)
        if missing > 0:
            self._cash.frombytes(bytes(4 * missing))
            self._history.frombytes(bytes(4 * missing))
            self._has_state.extend(bytes(missing))
        if not self._has_state[row]:
            self._has_state[row] = 1
            self._known += 1


def compress(score: float) -> float:
    """Return ln(1 + *score*), or 0 where it is not positive: imported scores span many orders."""
    return single(log1p(score)) if score > 0 else 0.0


def blend(
    opic: float,
    *,
    page_rank: float | None = None,
    host_score: float = 0.0,
    params: ImportanceParams = DEFAULTS,
) -> float:
    """Return one number of the parts; imports come compressed, None or 0 standing for none."""
    parts: tuple[tuple[float, float], ...]
    if page_rank is not None:
        parts = (
            (params.rank_weight, page_rank),
            (params.opic_weight_with_rank, opic),
            (params.host_weight_with_rank, host_score),
        )
    elif host_score:
        parts = ((params.opic_weight, opic), (params.host_weight, host_score))
    else:
        return opic
    total = 0.0
    for weight, part in parts:
        total = single(total + single(single(weight) * part))
    return total


def penalised(
    importance: float, *, depth: int, trap_suspect: bool, params: ImportanceParams = DEFAULTS
) -> float:
    """Return a row's priority: *importance*, less on a suspect host and with each link from a seed."""
    if trap_suspect:
        importance = single(importance * single(params.trap_factor))
    if depth > 0:
        importance = single(importance * single(single(params.depth_decay) ** depth))
    return importance


def url_budget(linking_hosts: int, *, params: ImportanceParams = DEFAULTS) -> int:
    """Return the URLs that a host may have to which *linking_hosts* others link.

    Computed in 32 bits, as the files' own field: a count beyond 2^28, which no crawl has, wraps.
    """
    budget = (params.base_budget + params.budget_per_host * linking_hosts) & _U32
    return min(max(budget, params.min_budget), params.max_budget)


class LinkingHosts:
    """How many other hosts link to each host, counted exactly up to *limit* pairs of hosts.

    Beyond that nothing is counted any more; a pair takes some 150 bytes. A link that does not say where
    it stands (host key 0) speaks for nobody.
    """

    __slots__ = ("_counts", "_limit", "_pairs")

    def __init__(self, *, limit: int = 262_144) -> None:
        self._limit = limit
        self._pairs: set[int] = set()
        self._counts: dict[int, int] = {}

    def add(self, host: int, source: int) -> int:
        """Note that a page of the host *source* links to *host*, and return how many hosts do."""
        pair = host << 64 | source
        if source and source != host and pair not in self._pairs and len(self._pairs) < self._limit:
            self._pairs.add(pair)
            self._counts[host] = self._counts.get(host, 0) + 1
        return self._counts.get(host, 0)


class Turn(Enum):
    """What a fetch is spent on."""

    DISCOVERY = "discovery"
    REFRESH = "refresh"


class BudgetSplit:
    """Fetches shared between new URLs and known ones; a share that is not positive counts as a half."""

    __slots__ = ("_discovery", "_refresh", "_shares")

    def __init__(self, discovery: float = 0.8, refresh: float = 0.2) -> None:
        self._shares = (discovery if discovery > 0 else 0.5, refresh if refresh > 0 else 0.5)
        self._discovery = 0
        self._refresh = 0

    def next(self, *, discovery_ready: bool, refresh_ready: bool) -> Turn:
        """Return whose turn it is, and count it; where neither is ready, nothing is counted."""
        share, other = self._shares
        behind = self._discovery / share <= self._refresh / other
        if discovery_ready and (behind or not refresh_ready):
            self._discovery += 1
        elif refresh_ready:
            self._refresh += 1
            return Turn.REFRESH
        return Turn.DISCOVERY


def priority_bucket(priority: float) -> int:
    """Return the bucket, of 64, in which other software of the format queues *priority*: four an octave.

    Our queues go by the priority itself. This is for showing a frontier as that software would.
    """
    if not priority > 0:
        return 0
    if priority >= 1:
        return _BUCKETS - 1
    return _BUCKETS - 1 - min(int(-log2(priority) * _LEVELS_AN_OCTAVE), _BUCKETS - 1)
