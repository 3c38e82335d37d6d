"""A world for tests: people, their jobs at a workshop, a customer to ask, and a site of three pages. Each test draws up its own task."""

import dataclasses
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from werkzeug import Request, Response

from agent_gym.core import ToolCall, ToolResult, ToolSpec
from agent_gym.world import UNDO, Base, Conflict, Counterpart, Draft, Family, Ids, Intent, Operation, Schema, Script, World, WorldKind

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["ANA", "BEN", "ORIGIN", "SHELF", "answer", "application", "clear_caches", "shelf", "way"]

Record = dict[str, Any]

SCHEMA = Schema.parse(
    """
    CREATE TABLE people (person_id TEXT PRIMARY KEY, name TEXT NOT NULL, zip TEXT NOT NULL) STRICT;
    CREATE TABLE jobs (
        job_id TEXT PRIMARY KEY,
        person_id TEXT NOT NULL REFERENCES people,
        status TEXT NOT NULL,
        price_cents INTEGER NOT NULL CHECK (price_cents >= 0)
    ) STRICT;
    CREATE TABLE log_visits (visit_id TEXT PRIMARY KEY, job_id TEXT NOT NULL) STRICT;
    """
)
ANA, BEN = "P1", "P2"


def rows(ids: Ids) -> Record:
    people = [{"person_id": ANA, "name": "Ana", "zip": "10115"}, {"person_id": BEN, "name": "Ben", "zip": "20095"}]
    jobs = [(f"J{number}", person, 1_000 * number) for number, person in enumerate([ANA, ANA, BEN], 1)]
    ids.new("J")
    return {
        "people": people,
        "jobs": [{"job_id": job, "person_id": who, "status": "open", "price_cents": cents} for job, who, cents in jobs],
    }


def build(seed: int) -> Base:
    return World.build(SCHEMA, seed, 1_000_000, rows)


def get_person(world: World, person_id: str) -> Record:
    return world.get("people", person_id)


def get_job(world: World, job_id: str) -> Record:
    return world.get("jobs", job_id)


def list_jobs(world: World, person_id: str) -> Record:
    return {"jobs": world.query("SELECT job_id FROM jobs WHERE person_id = ? ORDER BY job_id", (person_id,))}


def cancel_job(world: World, job_id: str) -> Record:
    if world.get("jobs", job_id)["status"] != "open":
        raise Conflict("the job is not open")
    world.advance(60)
    world.update("jobs", job_id, status="cancelled")
    world.insert("log_visits", visit_id=world.new_id("L"), job_id=job_id)
    return {"job_id": job_id}


def set_prices(world: World, job_ids: list[str], price_cents: int) -> Record:
    for job_id in job_ids:
        world.update("jobs", job_id, price_cents=price_cents)
    return {"job_ids": job_ids}


def add_job(world: World, person_id: str) -> Record:
    job_id = world.new_id("J")
    world.insert("jobs", job_id=job_id, person_id=person_id, status="open", price_cents=0)
    return {"job_id": job_id}


def remove_job(world: World, job_id: str) -> Record:
    world.delete("jobs", job_id)
    return {"job_id": job_id}


_PERSON = {"type": "string", "pattern": r"^P\d+$", "x-entity": "person_id"}
_JOB = {"type": "string", "pattern": r"^J\d+$", "x-entity": "job_id"}
_JOBS = {"type": "array", "items": _JOB, "minItems": 1}
_CENTS = {"type": "integer", "minimum": 0}


def _operation(run: Callable[..., Record], result: str, listing: str = "", hints: str = "read", **properties: Record) -> Operation:
    spec = ToolSpec(
        name=run.__name__,
        description=run.__name__.replace("_", " ") + ".",
        parameters={"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False},
        output_schema={
            "type": "object",
            "properties": dict.fromkeys(result.split(), True),
            "required": result.split(),
            "additionalProperties": False,
        },
        annotations={"readOnlyHint": hints == "read", "destructiveHint": hints == "destroys", "idempotentHint": hints == "read"},
        may_block=False,
        remote=True,
    )
    return Operation(spec, run, listing)


OPERATIONS = {
    operation.spec.name: operation
    for operation in (
        _operation(get_person, "person_id name zip", person_id=_PERSON),
        _operation(get_job, "job_id person_id status price_cents", job_id=_JOB),
        _operation(list_jobs, "jobs", "jobs", person_id=_PERSON),
        _operation(cancel_job, "job_id", hints="destroys", job_id=_JOB),
        _operation(set_prices, "job_ids", hints="writes", job_ids=_JOBS, price_cents=_CENTS),
        _operation(add_job, "job_id", hints="writes", person_id=_PERSON),
        _operation(remove_job, "job_id", hints="destroys", job_id=_JOB),
        UNDO,
    )
}


def owner(world: World, table: str, key: str) -> str | None:
    """Whose a row is: a person's own, and their jobs."""
    return str(world.get(table, key)["person_id"])


def oracle(goal: str) -> Script | None:
    def script() -> Script:
        yield ToolCall("get_job", {"job_id": "J1"})

    return script() if goal.startswith("Do it") else None


def shelf(draft: Callable[[World], None] = lambda _: None, **fields: Any) -> WorldKind:
    """The world with one family, ``shelf/job``, whose tasks are all alike.

    Args:
        draft: Prepares the world.
        **fields: Those of `Draft`.
    """

    def drawn(world: World, rng: np.random.Generator, split: str) -> Draft:  # noqa: ARG001 - all alike
        draft(world)
        return Draft(**{"goal": "Do it.", "params": {}, **fields})

    return dataclasses.replace(SHELF, families={"job": Family(name="job", draft=drawn)})


SHELF = WorldKind(
    name="shelf",
    schema=SCHEMA,
    build=build,
    operations=OPERATIONS,
    rules="Cancel nothing that is not open.",
    reasons=("not_open",),
    families={"job": Family(name="job", draft=lambda world, rng, split: Draft(goal="Do it.", params={}))},  # noqa: ARG005
    tasks={"train": 4, "test": 2},
    bases={"train": 1, "test": 1},
    oracle=oracle,
    verified_by={"cancel_job": "get_job", "remove_job": "get_job"},
    counterpart=Counterpart(
        "customer", {"confirm": Intent("Are you sure?", r"\bsure\b|\bconfirm"), "zip": Intent("What is your zip?", r"\bzip\b|\bpostcode\b")}
    ),
    owner=owner,
    site="tests.world.shelf",
)
"""The world."""


ORIGIN = "https://shelf.example"


def application(operate: Callable[[str, Mapping[str, Any]], ToolResult]) -> "WSGIApplication":
    """``/`` links to every job, ``/J1`` shows one and has a button that cancels it."""

    @Request.application
    def respond(request: Request) -> Response:
        job_id = request.path.strip("/")
        if not job_id:
            return _page("Jobs", " ".join(f'<a href="/{job}">{job}</a>' for job in ("J1", "J2", "J3")))
        result = operate("cancel_job" if request.method == "POST" else "get_job", {"job_id": job_id})
        if result.failed:
            return _page(result.status, f"<p>{escape(result.content)}</p>", 403 if result.status == "forbidden" else 409)
        return _page(job_id, f"<p>{escape(result.content)}</p><form method=post><button>Cancel it</button></form>")

    return respond


def _page(title: str, body: str, status: int = 200) -> Response:
    return Response(f"<!doctype html><title>{title}</title><h1>{title}</h1>{body}", status, content_type="text/html")


def answer(call: ToolCall, view: Record) -> Record | None:  # noqa: ARG001 - nobody plays the oracle here
    return None


def way(call: ToolCall, views: list[Record]) -> ToolCall:  # noqa: ARG001
    return call


def clear_caches() -> None: ...
