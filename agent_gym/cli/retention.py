"""``agent-gym store gc | policy`` and ``agent-gym episodes pin | unpin | flag | audit``."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.markup import escape

from agent_gym.cli.output import JsonOption, StoreOption, console, print_json, progress_console, table
from agent_gym.core.action import ToolCall
from agent_gym.errors import StoreError
from agent_gym.play.screen import printable
from agent_gym.trajectories import TrajectoryStore

if TYPE_CHECKING:
    from agent_gym.trajectories.audit import Audit
    from agent_gym.trajectories.retention import Report

__all__ = ["audit", "flag", "gc", "pin", "policy", "unpin"]

_SHOWN = 50

EpisodesArgument = Annotated[list[str], typer.Argument(metavar="ID…", help="Ids of episodes.")]
ReasonOption = Annotated[str | None, typer.Option(help="Why.")]


def pin(
    episodes: EpisodesArgument, reason: ReasonOption = None, store: StoreOption = Path("runs/store"), as_json: JsonOption = False
) -> None:
    """Keep episodes whole, whatever else has to go."""
    _mark("pin", "pinned", episodes, reason, store, as_json)


def unpin(
    episodes: EpisodesArgument, reason: ReasonOption = None, store: StoreOption = Path("runs/store"), as_json: JsonOption = False
) -> None:
    """Let pinned episodes go as any others."""
    _mark("unpin", "no longer pinned", episodes, reason, store, as_json)


def flag(
    episodes: EpisodesArgument, reason: ReasonOption = None, store: StoreOption = Path("runs/store"), as_json: JsonOption = False
) -> None:
    """Mark episodes as worth a look; they stay whole for as long as the policy says."""
    _mark("flag", "flagged", episodes, reason, store, as_json)


def _mark(kind: str, done: str, episodes: Iterable[str], reason: str | None, store: Path, as_json: bool) -> None:
    from agent_gym.trajectories.retention import who

    kept = TrajectoryStore(store)
    rows = [kept.episode(episode) for episode in episodes]  # all of them, before the first is marked
    for row in rows:
        kept.add_event(kind, episode_id=row["episode_id"], author=who(), reason=reason)
    kept.seal()
    if as_json:
        print_json({"store": str(store), kind: [row["episode_id"] for row in rows]})
    else:
        console.print(f"{len(rows)} episodes are {done} in {store}", markup=False, highlight=False, soft_wrap=True)


def policy(file: Annotated[Path | None, typer.Option("--policy", help="Check this file instead.")] = None) -> None:
    """Print the default policy of retention, to start a file of one's own from."""
    from agent_gym.trajectories.policy import DEFAULT_POLICY, load_policy

    if file is None:
        typer.echo(DEFAULT_POLICY, nl=False)
    else:
        load_policy(file)
        console.print(f"{file} can be used", markup=False, highlight=False, soft_wrap=True)


def gc(
    policy: Annotated[Path | None, typer.Option(help="What may go, in TOML; by default what agent-gym store policy prints.")] = None,
    budget: Annotated[str | None, typer.Option(help='The most bytes that may stay, such as "20 GB"; instead of the policy\'s.')] = None,
    run: Annotated[str | None, typer.Option(help="Only this run; the budget is then this run's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Drop what the policy lets go; exits with 1 if the budget still does not fit. May be interrupted at any time."""
    from agent_gym.trajectories.policy import bytes_of, load_policy
    from agent_gym.trajectories.retention import collect_garbage

    rules = load_policy(policy)
    if budget is not None:
        rules = rules.model_copy(update={"budget": bytes_of(budget)})
    report = collect_garbage(TrajectoryStore(store), rules, run_id=run, dry_run=dry_run)
    if as_json:
        print_json({"store": str(store), "run_id": run, **report.to_dict()})
    else:
        _list(report)
    if not report.fits:
        progress_console.print(f"error: {report.trouble}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1)


def _list(report: "Report") -> None:
    """What goes, one by one where it has not gone yet, and then together."""
    if report.dry_run:
        for one in report.dropped[:_SHOWN]:
            _line(f"{one.kind:6}  {_told(one.episode_id)}  {_told(one.reason)}")
        if len(report.dropped) > _SHOWN:
            _line(f"… and {len(report.dropped) - _SHOWN} more, which --json lists")
    groups: dict[tuple[str, str], list[int]] = {}
    for one in report.dropped:
        groups.setdefault((one.kind, one.reason), []).append(one.bytes)
    if groups:
        title = "what would go" if report.dry_run else "what went"
        table(title, ["what", "why", "episodes", "bytes, about"], [[*key, len(sizes), sum(sizes)] for key, sizes in groups.items()])
    if report.unnamed_blobs:
        _line(f"{report.unnamed_blobs} blobs that no row named {'would go' if report.dry_run else 'went'} too")
    _line(f"{report.bytes_before} bytes {'would become' if report.dry_run else 'became'} {report.bytes_after}")


def audit(
    episode: Annotated[str | None, typer.Argument(metavar="ID", help="The episode's id; by default the newest.")] = None,
    head: Annotated[bool, typer.Option("--head", help="Print the newest entry of the ledger and its chain, to be kept elsewhere.")] = False,
    against: Annotated[str | None, typer.Option(metavar="HEAD", help="What --head printed once: the ledger must go through it.")] = None,
    store: StoreOption = Path("runs/store"),
    as_json: JsonOption = False,
) -> None:
    """Say who or what made an episode, what was done in it, and whether it is as it was sealed; exits with 1 if not."""
    from agent_gym.trajectories import audit as auditing

    kept = TrajectoryStore(store)
    if head:
        newest = auditing.head(kept)
        if as_json:
            print_json({"store": str(store), "head": newest})
        else:
            typer.echo(newest or "")
        return
    if episode is None:
        if not (newest_rows := kept.episodes(1)):
            raise StoreError(f"no episodes in {store}")
        episode = str(newest_rows[0]["episode_id"])
    found = auditing.audit(kept, episode, against)
    if as_json:
        print_json({"store": str(store), "ok": not found.findings, **asdict(found)})
    else:
        _show(found)
    raise typer.Exit(bool(found.findings))


def _show(found: "Audit") -> None:
    _line(f"[bold cyan]{escape(found.episode_id)}[/]")
    for title, part in (("made by", found.trigger), ("what", found.which), ("result", found.result)):
        _line(f"\n[bold]{title}[/]")
        for name, value in part.items():
            if value is not None:
                _line(f"  [dim]{name}[/]  {_told(value)}")
    _line("\n[bold]actions[/]")
    for action in found.actions:
        reward = f"  {action['reward']:+g}" if action["reward"] else ""
        call = action["action"]
        shown = str(ToolCall(call["name"], call["arguments"])) if isinstance(call, dict) else call or "(an action that could not be read)"
        _line(f"  [dim]{action['step']:4}[/]  {_told(shown)}  [bold]{action['status']}[/]{reward}")
    checks = [f"{'passed' if check['passed'] else 'failed'}  {check['name']}  {check['detail']}" for check in found.checks]
    changes = [f"{change['where']} {change['key']}: {_json(change['before'])} → {_json(change['after'])}" for change in found.changes]
    events = [
        f"{event['happened_at']:%Y-%m-%d %H:%M:%S}  {event['kind']}  {event['author'] or ''}  {event['reason'] or ''}"
        for event in found.events
    ]
    for title, lines in (("checks", checks), ("changes", changes), ("events", events)):
        if lines:
            _line(f"\n[bold]{title}[/]")
        for line in lines:
            _line(f"  {_told(line)}")
    _line("\n[bold]as it was sealed?[/]")
    for group, state in found.digests.items():
        _line(f"  [dim]{group.replace('_', ' ')}[/]  {state}")
    _line(f"  [dim]files[/]  {len(found.files)}, {sum(told.startswith('sha256 ') for told in found.files.values())} with their checksums")
    _line(f"  [dim]ledger[/]  entry {found.entry or 'none'}, head {found.head or 'none'}")
    for finding in found.findings:
        _line(f"[bold red]{escape(printable(finding))}[/]")
    if not found.findings:
        _line("[bold green]nothing was altered[/]")


def _told(value: Any) -> str:
    return escape(printable(str(value) if isinstance(value, str | datetime) else _json(value)))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _line(markup: str) -> None:
    console.print(markup, highlight=False, soft_wrap=True)
