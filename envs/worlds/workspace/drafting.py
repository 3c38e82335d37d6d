"""How a task is drawn up: pick what it is about, put the records into shape, say it in words, state what will be judged."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.routes import route_steps, who
from agent_gym.world import Draft, Request, Result, Script, World, calling, milestones, next_call

__all__ = ["Case", "Errand", "cheat", "compose", "forbid", "looked_up", "not_calling"]

Row = dict[str, Any]


@dataclass(kw_only=True)
class Case:
    """What one task is about.

    Attributes:
        me: Who is asking.
        slots: The request's own slots.
        looks: What must be looked at before anything is changed, in order; the last shows what the change is about.
        steps: How many calls the oracle makes between knowing who is asking and the closing one.
        rows: The goal rows.
        allowed: What may change.
        proof: By reason to refuse, which of the looks shows it; by default the last.
        refused_after: By reason to refuse, how many of the steps are made then.
        about: What a rule is imposed on, and what must not be touched then: ids by kind.
    """

    me: Row
    slots: dict[str, str]
    looks: list[Row]
    steps: int
    rows: list[Row] = field(default_factory=list)
    allowed: list[Row] = field(default_factory=list)
    proof: Mapping[str, int] = field(default_factory=dict)
    refused_after: Mapping[str, int] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Errand(Request):
    """One kind of request; its name is the one by which rules forbid it.

    Attributes:
        case: Draws what exactly is asked, by a route, on a world that it puts into shape for it: one where no rule forbids it, or where
            the one of that name does, as far as what is chosen decides on that.
        routes: The ways to say who is asking.
        writes: The tools that carry it out.
    """

    case: Callable[[World, np.random.Generator, str, str], Case]
    routes: Sequence[str] = ("number", "email", "team")
    writes: Sequence[str] = ()


def looked_up(me: Row, other: Row) -> Row:
    """The pattern of looking a colleague up: who has that name and could be meant, or that account."""
    account = calling("get_person", person_id=other["person_id"]), calling("find_person", email=other["email"])
    return {"any_of": [calling("find_colleagues", person_id=me["person_id"], name=other["person"]), *account]}


def forbid(tools: Sequence[str], **arguments: str) -> list[Row]:
    """Calls that must not take effect."""
    return [calling(tool, **arguments) for tool in tools]


def not_calling(requests: Sequence[Errand], answers: Mapping[str, Result]) -> Callable[[Sequence[Mapping[str, Any]]], ToolCall]:
    """A cheat: does as the oracle would, but takes these answers for what some tools would say, and does not call them."""

    def script(honest: Script) -> Script:
        call = next(honest)
        with suppress(StopIteration):
            while True:
                call = honest.send(answers[call.name] if call.name in answers else (yield call))

    return cheat(requests, lambda request, slots: script(request.oracle(slots)))


def cheat(
    requests: Sequence[Errand], script: Callable[[Errand, Mapping[str, str]], Script]
) -> Callable[[Sequence[Mapping[str, Any]]], ToolCall]:
    """A cheat that follows a script of its own, from the request that the goal makes and its slots."""

    def call(observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        goal = observations[0]["data"]["goal"]
        request, slots = next((one, slots) for one in requests if (slots := one.book.read(goal)) is not None)
        return next_call(script(request, slots), observations)

    return call


def compose(
    world: World, rng: np.random.Generator, split: str, request: Errand, route: str, case: Case, *, refusal: str = "", **more: Any
) -> Draft:
    """Puts a request into words and states what will be judged.

    Args:
        world: The world, prepared for it.
        rng: What the wording is drawn from.
        split: The task's split; it decides on the wordings.
        request: What kind of request.
        route: How it is said who is asking.
        case: What it is about.
        refusal: The reason for which it must be refused, or nothing.
        more: Further fields of the draft.
    """
    written = request.book.write(rng, split, route, {**who(route, case.me), **case.slots})
    looks, steps = case.looks, case.steps
    if refusal:
        looks = looks[: case.proof.get(refusal, len(looks) - 1) + 1][-1:]
        steps = case.refused_after.get(refusal, steps - 1)
    fields: dict[str, Any] = {
        "rows": [] if refusal else case.rows,
        "allowed": [] if refusal else case.allowed,
        "look_first": looks,
        "milestones": milestones(looks, done=bool(case.rows) and not refusal),
        "refusal": refusal,
        "steps": steps + 1 + (0 if route == "id" else route_steps(world, route, case.me)),
        "facts": len(looks) + 1,
    }
    return Draft(goal=written.text, params={"request": request.name, "route": route, "slots": written.slots}, **{**fields, **more})
