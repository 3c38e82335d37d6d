"""A pool's figures on the terminal, once or live."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agent_gym.runner.monitor import PoolStats

__all__ = ["PoolTable", "watch"]


class PoolTable:
    """A pool's figures for the terminal.

    Args:
        stats: The figures.
        rows: How many environments are shown at most: first those with alerts, then those that had most faults, then those
            that use most memory.
    """

    def __init__(self, stats: PoolStats, rows: int = 12) -> None:
        self.stats, self.rows = stats, rows

    def __rich__(self) -> RenderableType:
        stats = self.stats
        head = Table.grid(padding=(0, 2))
        bound = "" if stats.fraction_of_bound is None else f", {stats.fraction_of_bound:.0%} of the bound"
        head.add_row("steps", f"{stats.steps:,}, {stats.throughput_per_s:,.1f} a second{bound}")
        head.add_row("step", f"p50 {_ms(stats.step_p50_s)}, p95 {_ms(stats.step_p95_s)}, p99 {_ms(stats.step_p99_s)}")
        waits = f"learner {_ms(stats.learner_wait_p50_s)}, runner {_ms(stats.overhead_p50_s)} (p50)"
        head.add_row("waits", f"{waits}; {stats.outstanding} outstanding, {stats.arrived} arrived")
        head.add_row("envs", f"{stats.num_envs} by {stats.backend}: {_counts(stats.states)}")
        if stats.tasks is not None:
            head.add_row("tasks", _counts(stats.tasks))
        head.add_row("episodes", f"{stats.episodes:,}")
        faults = f"{stats.faults} faults, {stats.restarts} restarts, {stats.late_answers} late answers"
        head.add_row("faults", Text(faults, style="yellow" if stats.faults else ""))
        alerts = [Text(alert.text, style="bold red") for alert in stats.alerts]
        remark = [Text(stats.remark, style="dim")] if stats.remark else []
        return Group(head, *alerts, self._envs(), *remark)

    def _envs(self) -> Table:
        alerted = {alert.env_id for alert in self.stats.alerts}
        ranked = sorted(self.stats.envs, key=lambda env: (env.env_id not in alerted, -env.faults, -(env.memory_mib or 0), env.env_id))
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for column in ("env", "state", "steps", "faults", "CPU s", "MiB", "files", "processes"):
            table.add_column(column, justify="left" if column == "state" else "right")
        for env in ranked[: self.rows]:
            used = ["–" if value is None else f"{value:.0f}" for value in (env.cpu_s, env.memory_mib, env.fds, env.processes)]
            style = "bold red" if env.env_id in alerted else "yellow" if env.state in ("restarting", "retired") else ""
            table.add_row(str(env.env_id), env.state, str(env.steps), str(env.faults), *used, style=style)
        if len(ranked) > self.rows:
            table.add_row("…", f"{len(ranked) - self.rows} more", style="dim")
        return table


class _Watched(Protocol):
    def stats(self) -> PoolStats: ...


@contextlib.contextmanager
def watch(pool: _Watched, every_s: float = 1.0, console: Console | None = None) -> Iterator[None]:
    """Shows a pool's table on stderr while the block runs, if that is a terminal; else does nothing.

    Args:
        pool: The pool; its ``stats`` is called from another thread.
        every_s: How often, in seconds.
        console: Where to, if not on stderr.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with Live(get_renderable=lambda: PoolTable(pool.stats()), console=console, refresh_per_second=1 / every_s):
        yield


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:,.3g} ms"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "none"
