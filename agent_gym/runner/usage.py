"""What each environment uses, where that can be told, and which one keeps growing."""

import contextlib
import os
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import psutil
from numpy.typing import NDArray

from agent_gym.runner.messages import Usage

__all__ = ["Alert", "Growth", "measure"]

_MIB = 2**20


@dataclass(frozen=True)
class Alert:
    """An environment that keeps growing.

    Attributes:
        env_id: The slot.
        what: ``fds``, ``memory_mib`` or ``processes``.
        now: Its latest value.
        per_minute: By how much it grows in a minute.
        text: The same in words.
    """

    env_id: int
    what: str
    now: float
    per_minute: float
    text: str


def measure(pids: Iterable[int]) -> dict[int, Usage]:
    """What each of these processes uses together with all that it started, found in one pass over the process table.

    A process belongs to a worker if it descends from it or is in the session that it leads. One that has gone is left out.
    """
    table = {process.pid: process for process in psutil.process_iter()}
    owners: dict[int, int | None] = {pid: pid for pid in pids if pid in table}
    used: defaultdict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for pid, process in table.items():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if (owner := _owner(pid, table, owners)) is not None:
                with process.oneshot():
                    used[owner].append((sum(process.cpu_times()[:4]), process.memory_info().rss, process.num_fds()))
    return {
        pid: Usage(pid, sum(one[0] for one in own), sum(one[1] for one in own) / _MIB, sum(one[2] for one in own), len(own))
        for pid, own in used.items()
    }


def _owner(pid: int, table: Mapping[int, psutil.Process], owners: dict[int, int | None]) -> int | None:
    """The worker that a process belongs to; ``owners`` holds what is known, and learns."""
    if pid not in owners:
        session, parent = os.getsid(pid), table[pid].ppid() if pid in table else 0
        owners[pid] = session if owners.get(session) == session else None  # for now, lest a re-used pid leads in a circle
        if owners[pid] is None and parent in table:
            owners[pid] = _owner(parent, table, owners)
    return owners[pid]


class Growth:
    """Tells growth from ups and downs, over each worker's last sixty samples (five minutes at the meter's own pace).

    A line is fitted by least squares. It is an alert if there are at least ten samples, the line explains four fifths of their
    variance, it rises over the window by at least the threshold, and over the later half it still rises at least half as steeply:
    a warm-up levels off, and what is opened and closed again goes up and down. A new worker starts anew.
    """

    THRESHOLDS: Mapping[str, tuple[float, str]] = {
        "fds": (8.0, "open files"),
        "memory_mib": (64.0, "MiB of memory"),
        "processes": (4.0, "processes"),
    }

    def __init__(self, samples: int = 60) -> None:
        self._samples: defaultdict[int, deque[tuple[float, Usage]]] = defaultdict(lambda: deque(maxlen=samples))

    def add(self, at: float, usages: Mapping[int, Usage]) -> None:
        """Takes in a sample of each slot, taken at so many seconds."""
        for gone in self._samples.keys() - usages.keys():
            del self._samples[gone]
        for slot, usage in usages.items():
            own = self._samples[slot]
            if own and own[-1][1].pid != usage.pid:
                own.clear()
            own.append((at, usage))

    def alerts(self) -> list[Alert]:
        """What grows by now."""
        found = []
        for slot, own in sorted(self._samples.items()):
            if len(own) < 10:
                continue
            times = np.array([at for at, _ in own])
            for what, (threshold, words) in self.THRESHOLDS.items():
                values = np.array([getattr(usage, what) for _, usage in own], dtype=np.float64)
                slope, explained = _line(times, values)
                later, _ = _line(times[len(own) // 2 :], values[len(own) // 2 :])
                if slope * (times[-1] - times[0]) >= threshold and explained >= 0.8 and later >= slope / 2:
                    now, minute = float(values[-1]), slope * 60
                    text = f"env {slot} keeps growing: {now:.0f} {words}, {minute:+.3g} a minute"
                    found.append(Alert(slot, what, now, minute, text))
        return found


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """The slope of the least-squares line, and the share of the variance that it explains."""
    x, y = x - x.mean(), y - y.mean()
    xx, xy, yy = float(x @ x), float(x @ y), float(y @ y)
    return (xy / xx, xy * xy / (xx * yy)) if xx > 0 and yy > 0 else (0.0, 0.0)
