"""``agent-gym doctor system``. Exit status: 0 if all that is needed works, 1 if something lacks."""

import dataclasses

import typer

from agent_gym.browser.chromium.executable import available as chromium_lacks
from agent_gym.browser.chromium.executable import executable
from agent_gym.cli.output import JsonOption, console, print_json, table
from agent_gym.sandbox.system import Part, look_at_system

__all__ = ["app"]

app = typer.Typer(help="See what works on this machine, and how to mend the rest.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """See what works on this machine, and how to mend the rest."""


@app.command()
def system(as_json: JsonOption = False) -> None:
    """Look at what isolation needs, Chromium, cores and memory; print the one command that mends each lack."""
    parts = [*look_at_system(), _chromium()]
    works = all(part.works for part in parts if part.needed)
    if as_json:
        print_json({"works": works, "parts": [dataclasses.asdict(part) for part in parts]})
    else:
        table("This machine", ["part", "", "found"], [[part.name, _word(part), part.found] for part in parts])
        for part in parts:
            if part.remedy:
                console.print(f"{part.name}: {part.remedy}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(0 if works else 1)


def _chromium() -> Part:
    lack = chromium_lacks()
    if lack is None:
        return Part(name="chromium", works=True, found=executable(), needed=False)
    return Part(name="chromium", works=False, found="not here; pages run without it", remedy=str(lack), needed=False)


def _word(part: Part) -> str:
    return "yes" if part.works else "?" if part.works is None else "no" if part.needed else "no (not needed)"
