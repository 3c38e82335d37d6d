"""``agent-gym store seal | compact | fsck | recover | stats``."""

from pathlib import Path
from typing import Annotated

import typer

from agent_gym.cli.output import JsonOption, StoreOption, console, print_json, table
from agent_gym.trajectories import TrajectoryStore

__all__ = ["app"]

app = typer.Typer(help="Look after a store of trajectories.", no_args_is_help=True)
RunOption = Annotated[str | None, typer.Option(help="Only this run.")]


@app.command("seal")
def seal(run: RunOption = None, store: StoreOption = Path("runs/store"), as_json: JsonOption = False) -> None:
    """Seal into Parquet what writers have finished or left behind; reading does the same by itself."""
    sealed = TrajectoryStore(store).seal(run)
    if as_json:
        print_json({"store": str(store), "episodes": sealed})
    else:
        console.print(f"{sealed} episodes sealed in {store}", soft_wrap=True)


@app.command("compact")
def compact(run: RunOption = None, store: StoreOption = Path("runs/store"), as_json: JsonOption = False) -> None:
    """Merge the many small files of a run into few large ones. May be done at any time, and interrupted."""
    before, after = TrajectoryStore(store).compact(run)
    if as_json:
        print_json({"store": str(store), "parts_before": before, "parts_after": after})
    else:
        console.print(f"{before} parts became {after} in {store}", soft_wrap=True)


@app.command("fsck")
def fsck(store: StoreOption = Path("runs/store"), as_json: JsonOption = False) -> None:
    """Look for damage: every file, row and log line. Changes nothing; exits with 1 if something is wrong."""
    findings = TrajectoryStore(store).fsck()
    if as_json:
        print_json({"store": str(store), "ok": not findings, "findings": [one._asdict() for one in findings]})
    else:
        for one in findings:
            console.print(str(one), markup=False, highlight=False, soft_wrap=True)
        console.print(f"{len(findings)} findings in {store}" if findings else f"{store} is whole", markup=False, soft_wrap=True)
    raise typer.Exit(bool(findings))


@app.command("recover")
def recover(store: StoreOption = Path("runs/store"), as_json: JsonOption = False) -> None:
    """Make a damaged store whole, with what can be read of it. Damaged files are kept, with the ending .damaged."""
    done = TrajectoryStore(store).recover()
    if as_json:
        print_json({"store": str(store), "done": [one._asdict() for one in done]})
    else:
        for one in done:
            console.print(str(one), markup=False, highlight=False, soft_wrap=True)
        console.print(f"{len(done)} things done in {store}" if done else f"nothing to do in {store}", markup=False, soft_wrap=True)


@app.command("stats")
def stats(store: StoreOption = Path("runs/store"), as_json: JsonOption = False) -> None:
    """Say how much there is, and how many bytes a step takes."""
    found = TrajectoryStore(store).stats()
    if as_json:
        print_json({"store": str(store), **found})
        return
    rows = [[name, one["rows"], one["files"], one["bytes"]] for name, one in found["tables"].items()]
    rows += [[name.replace("_", " "), "", found[name]["files"], found[name]["bytes"]] for name in ("blobs", "open_logs")]
    per_step = "" if found["bytes_per_step"] is None else f", {found['bytes_per_step']:.0f} bytes a step"
    table(f"{found['runs']} runs in {store}{per_step}", ["what", "rows", "files", "bytes"], rows)
