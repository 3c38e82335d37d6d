"""The ``agent-gym`` command. One file a group; the work is done elsewhere."""

import sys

import gymnasium.error
import typer
from rich.markup import escape

from agent_gym.cli import (
    bench,
    benchmark,
    check,
    demo,
    doctor,
    episodes,
    evaluate,
    export,
    fork,
    play,
    replay,
    retention,
    store,
    tasks,
    train,
    view,
)
from agent_gym.cli.output import progress_console
from agent_gym.errors import AgentGymError
from agent_gym.registry import IDS

__all__ = ["app", "main"]

app = typer.Typer(
    name="agent-gym",
    help="Train and measure agents that use tools.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train.train)
app.command("eval")(evaluate.evaluate)
app.command("benchmark")(benchmark.benchmark)
app.command("play")(play.play)
app.command("demo")(demo.demo)
app.command("view")(view.view)
app.command("bench")(bench.bench)
episodes.app.command("export")(export.export_episodes)
episodes.app.command("replay")(replay.replay_episodes)
episodes.app.command("fork")(fork.fork_episode)
episodes.app.command("blame")(fork.blame_episode)
for _command in (retention.audit, retention.pin, retention.unpin, retention.flag):
    episodes.app.command()(_command)
store.app.command()(retention.gc)
store.app.command()(retention.policy)
app.add_typer(tasks.app, name="tasks")
app.add_typer(episodes.app, name="episodes")
app.add_typer(store.app, name="store")
app.add_typer(check.app, name="check")
app.add_typer(doctor.app, name="doctor")


def main() -> None:
    """Runs the command; an error of ours is one line on stderr and exit status 2."""
    try:
        app()
    except (AgentGymError, gymnasium.error.Error) as error:
        remedy = f" Known: {', '.join(IDS)}." if isinstance(error, gymnasium.error.UnregisteredEnv) else ""
        progress_console.print("[bold red]error:[/]", escape(f"{error}{remedy}"), highlight=False, soft_wrap=True)
        sys.exit(2)
