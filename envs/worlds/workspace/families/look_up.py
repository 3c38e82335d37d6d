"""Look up: what an entry of the address book says. Several contacts share the name."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Request, compose, pick, read
from agent_gym.envs.worlds.workspace.routes import account, contact, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_contact, a_person
from agent_gym.world import Draft, Family, Script, World

__all__ = ["FAMILY", "REQUEST"]

_WHAT = {"phone": "phone number", "email": "e-mail address", "city": "city"}
_FRAMES = {
    "train": (
        "{who} What is the {what} of {contact} at {company}?",
        "{who} I need the {what} of {contact}, {company}.",
        "Could you look up the {what} of {contact} from {company}? {who}",
        "Look up {contact} of {company} for me: the {what}. {who}",
        "{who} Please look up the {what} of {contact} at {company}.",
        "{who} Kindly tell me the {what} of {contact}, who is with {company}.",
    ),
    "held_out": (
        "{who} My question: which {what} does {contact} of {company} have?",
        "Can you tell me the {what} of {contact} at {company}? {who}",
        "{who} It is about {contact} of {company}: what is the {what}?",
    ),
    "synonyms": (
        "{who} Under which {what} is {contact} of {company} on file?",
        "Find out the {what} that we have for {contact} from {company}. {who}",
    ),
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    me, other = a_person(world, rng), a_contact(world, rng)
    return Case(
        me=me,
        slots={"contact": other["contact"], "company": other["company"], "what": _WHAT[pick(rng, list(_WHAT))]},
        looks=[
            read("find_contacts", person_id=me["person_id"], name=other["contact"]),
            read("get_contact", contact_id=other["contact_id"]),
        ],
        steps=2,
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    other = yield from contact(slots, me)
    found = yield ToolCall("get_contact", {"contact_id": other["contact_id"]})
    yield ToolCall("finish", {"answer": found[_asked(slots)]})


def _asked(slots: Mapping[str, str]) -> str:
    return next(field for field, words in _WHAT.items() if words == slots["what"])


REQUEST = Request(name="look_up", book=phrasebook(_FRAMES, slots={"what": "|".join(_WHAT.values())}), case=_case, oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    case = REQUEST.case(world, rng, route, "")
    asks = _asked(case.slots)
    answer = world.get("contacts", case.looks[-1]["arguments"]["contact_id"])[asks]
    namesakes = world.query("SELECT contact_id FROM contacts WHERE contact = ?", (case.slots["contact"],))
    return compose(world, rng, split, REQUEST, route, case, asks=asks, answer=answer, distractors=len(namesakes) - 1)


FAMILY = Family(name="look_up", draft=_draft, capabilities=("lookup",))
