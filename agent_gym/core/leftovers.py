"""What an environment can leave behind in its process, and whether it was this environment that did.

Other environments, browsers, pools and threads live in the same process, so nothing is blamed for what merely is different. What grows
(open files, threads, children, temporary files) or changes (a module's variables) must do so in every one of several episodes and stay,
and must not do so while the environment rests. What can only be set (a variable of the process, the folder, a generator's state) is set
back, and must come again with the next episode.
"""

import gc
import locale
import os
import random  # noqa: TID251 - looked at, never drawn from
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import psutil

__all__ = ["Leak", "Settings", "left_behind", "modules_of", "settings"]

Settings = dict[str, Any]
"""What a process has one of, by channel."""
_ROUNDS, _MORE_ROUNDS = 3, 5
_SETTLE_S, _REST_S = 1.0, 0.05
_MOST = 1_000
_SIGNALS = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGPIPE"))
_PLAIN = (bool, int, str, bytes, type(None))


class Leak(NamedTuple):
    """Something that outlives the episode it belongs to.

    Attributes:
        channel: Where it shows, such as ``probes.clock`` or ``threads``.
        value: What is there, at most 200 characters.
        fresh: What a fresh instance has there instead; None where each episode leaves one more thing.
    """

    channel: str
    value: str
    fresh: str | None = None

    def __str__(self) -> str:
        if self.fresh is None:
            return f"{self.channel}: every episode leaves {self.value!r} behind"
        return f"{self.channel} is {self.value!r}, in a fresh instance {self.fresh!r}"


def settings() -> Settings:
    """What the process has one of: variables, folder, locale, signal handlers, and the states of the global generators."""
    numbers = np.random.get_state(legacy=False)
    assert isinstance(numbers, dict)
    state = numbers["state"]
    return {
        **{f"env.{name}": value for name, value in os.environ.items()},
        "cwd": _folder(),
        "locale": locale.setlocale(locale.LC_ALL),
        "random": random.getstate(),
        "numpy.random": (state["key"].tobytes(), state["pos"], numbers["has_gauss"], numbers["gauss"]),
        **{f"signals.{each.name}": signal.getsignal(each) for each in _SIGNALS},
    }


def _folder() -> str | None:
    with suppress(FileNotFoundError):  # it may have been deleted
        return os.getcwd()  # noqa: PTH109 - a Path costs more than the call
    return None


def changed(before: Settings, after: Settings) -> Settings:
    """What differs, as it was before; None where it was not there."""
    if before == after:
        return {}
    return {key: before.get(key) for key in {**before, **after} if before.get(key) != after.get(key)}


def modules_of(kinds: Collection[type]) -> list[ModuleType]:
    """The modules whose variables count as an environment's own: those of the packages that its classes come from, bases included."""
    names = {base.__module__.partition(".")[0] for kind in kinds for base in kind.__mro__}
    names -= {*sys.stdlib_module_names, "gymnasium"}
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in names]


def left_behind(episode: Callable[[], object], suspects: Settings, modules: Sequence[ModuleType]) -> list[Leak]:
    """Plays an episode several times over and tells what stays of each.

    Args:
        episode: Starts the same episode once more in one instance, and plays it.
        suspects: `Settings` that have changed with a reset, as they were before.
        modules: Whose variables to look at.
    """
    with _one_at_a_time:
        episode()  # whatever is made once, at first use, is there after this
        before = settings()
        leaks = []
        if _left(_Trial(episode, modules, _ROUNDS, rest=False)):
            leaks = _left(_Trial(episode, modules, _MORE_ROUNDS, rest=True), within_s=_SETTLE_S)
        suspects = {**changed(before, settings()), **suspects}
        return [*leaks, *(Leak(key, found) for key, value in suspects.items() if (found := _comes_again(key, value, episode)))]


_Things = dict[Hashable, Any]


class _Trial:
    """Some rounds of an episode, and of rest after each if that is wanted, and by channel what was new after each."""

    def __init__(self, episode: Callable[[], object], modules: Sequence[ModuleType], rounds: int, rest: bool) -> None:
        self.modules = modules
        self.played: list[dict[str, _Things]] = []
        self.rested: list[dict[str, _Things]] = []
        seen = _look(modules)
        for _ in range(rounds):
            start = time.monotonic()
            episode()
            took = max(time.monotonic() - start, _REST_S)
            if rest:
                time.sleep(took)  # what it has started may be slow to come
            last, seen = seen, _look(modules)
            self.played.append(_new(last, seen))
            if rest:
                time.sleep(2 * took)
                last, seen = seen, _look(modules)
                self.rested.append(_new(last, seen))
        episode()  # what the last episode still holds is its own


def _left(trial: _Trial, within_s: float = 0.0) -> list[Leak]:
    """What every round left that stays; nothing that goes away within some seconds."""
    end = time.monotonic() + within_s
    while True:
        now, found = _look(trial.modules), []
        for channel in trial.played[0]:
            played, rested = ([_staying(new, now, channel) for new in rounds] for rounds in (trial.played, trial.rested))
            if all(played) and sum(map(bool, rested)) <= 1:  # that one may be somebody else's
                found.append(Leak(channel, str(played[-1][-1])[:200]))
        if not found or time.monotonic() > end:
            return found
        gc.collect()
        time.sleep(0.1)


def _staying(new: Mapping[str, _Things], now: Mapping[str, _Things], channel: str) -> list[Any]:
    """The new things of a channel that are there now; a variable's earlier state need not be."""
    return [told for item, told in new.get(channel, {}).items() if channel.startswith("globals.") or item in now[channel]]


def _look(modules: Sequence[ModuleType]) -> dict[str, _Things]:
    """What is there now, by channel: what makes each thing that thing, and how it is told."""
    children = psutil.Process().children(recursive=True)
    temp = tempfile.gettempdir()
    return {
        "children": {child: _Command(child) for child in children},
        "threads": {thread.ident: thread.name for thread in threading.enumerate()},
        "fds": _open_files(),
        "temp": {entry: f"{temp}/{entry}" for entry in _names(temp)},
        **{f"globals.{name}": {_shape(value): value} for module in modules for name, value in _variables(module)},
    }


def _new(before: Mapping[str, _Things], after: Mapping[str, _Things]) -> dict[str, _Things]:
    fresh = {
        channel: {item: told for item, told in things.items() if item not in before.get(channel, ())} for channel, things in after.items()
    }
    return {channel: things for channel, things in fresh.items() if things}


class _Command(NamedTuple):
    """A process that is told by its command; asked only if it is told of."""

    process: psutil.Process

    def __str__(self) -> str:
        with suppress(psutil.Error):
            return " ".join(self.process.cmdline()) or str(self.process.name())
        return str(self.process.pid)


def _names(folder: str) -> list[str]:
    with suppress(FileNotFoundError):
        return os.listdir(folder)  # noqa: PTH208 - names are wanted
    return []


def _open_files() -> _Things:
    told: _Things = {}
    for fd in _names("/dev/fd"):
        with suppress(OSError):  # the folder's own, which is closed by now
            target = os.readlink(f"/dev/fd/{fd}")  # noqa: PTH115
            told[fd, target] = target
    return told


def _variables(module: ModuleType) -> list[tuple[str, Any]]:
    """The data that a module and its classes keep, by full name."""
    found = []
    for name, value in list(vars(module).items()):
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                found += [(f"{module.__name__}.{name}.{key}", each) for key, each in list(vars(value).items()) if _is_data(key, each)]
        elif _is_data(name, value):
            found.append((f"{module.__name__}.{name}", value))
    return found


def _is_data(name: str, value: Any) -> bool:
    return not name.startswith("__") and isinstance(value, (*_PLAIN, float, list, dict, set, deque, np.ndarray, bytearray))


def _shape(value: Any, depth: int = 4) -> Hashable:
    """What tells one state of a variable from another: plain values and containers of them; of anything else the kind only."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        return hash(value.tobytes()) if value.dtype != object else value.shape
    if isinstance(value, dict | list | tuple | set | frozenset | deque | bytearray):
        if depth == 0 or len(value) > _MOST:
            return len(value)
        with suppress(RuntimeError):  # another thread changes it while it is read
            parts = value.items() if isinstance(value, dict) else value
            shapes = (_shape(part, depth - 1) for part in parts)
            return frozenset(shapes) if isinstance(value, set | frozenset) else tuple(shapes)
        return len(value)
    return repr(value) if isinstance(value, float) else type(value).__qualname__


def _comes_again(key: str, before: Any, episode: Callable[[], object]) -> str:
    """Sets something back to what it was: what the next episode makes of it, each time, and nobody else; or nothing."""
    now = settings().get(key)
    if not _put(key, before):
        return ""
    try:
        for _ in range(_ROUNDS):
            _put(key, before)
            start = time.monotonic()
            episode()
            took = time.monotonic() - start
            made = settings().get(key)
            _put(key, before)
            time.sleep(max(took, _REST_S))
            if made == before or settings().get(key) != before:
                return ""
        return "another state" if "random" in key else str(made)[:200]
    finally:
        _put(key, now)


def _put(key: str, value: Any) -> bool:
    """Sets one of `settings`, and tells whether that could be done."""
    kind, _, name = key.partition(".")
    try:
        if kind == "env":
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        elif kind == "cwd":
            os.chdir(value or ".")
        elif kind == "locale":
            locale.setlocale(locale.LC_ALL, value)
        elif kind == "random":
            random.setstate(value)
        elif kind == "numpy":
            numbers, position, has_gauss, gauss = value
            np.random.set_state(("MT19937", np.frombuffer(numbers, np.uint32), position, has_gauss, gauss))
        elif value is None or threading.current_thread() is not threading.main_thread():
            return False  # a handler that is not Python's, or that only the main thread may set
        else:
            signal.signal(signal.Signals[name], value)
    except (OSError, locale.Error):
        return False
    return True


_one_at_a_time = threading.RLock()


def _begin() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


os.register_at_fork(after_in_child=_begin)
