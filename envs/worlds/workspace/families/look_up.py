"""Look up: what an entry of the address book says. Three contacts share the name, and only their entries tell them apart."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.catalogue import CITIES
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose
from agent_gym.envs.worlds.workspace.routes import account, phrasebook
from agent_gym.envs.worlds.workspace.targets import a_contact, a_person
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_WHAT = {"phone": "phone number", "email": "e-mail address", "company": "company"}
_FRAMES = {
    "train": (
        "{who} What is the {what} of {contact} in {city}?",
        "{who} I need the {what} of {contact}, {city}.",
        "Could you look up the {what} of {contact} from {city}? {who}",
        "Look up {contact} in {city} for me: the {what}. {who}",
        "{who} Please look up the {what} of {contact} in {city}.",
        "{who} Kindly tell me the {what} of {contact}, who lives in {city}.",
    ),
    "held_out": (
        "{who} My question: which {what} does {contact} in {city} have?",
        "Can you tell me the {what} of {contact} in {city}? {who}",
        "{who} It is about {contact} in {city}: what is the {what}?",
    ),
    "synonyms": (
        "{who} Under which {what} is {contact} in {city} on file?",
        "Find out the {what} that we have for {contact} from {city}. {who}",
    ),
}


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    me, other = a_person(world, rng), a_contact(world, rng, shared=True)
    namesakes = world.query("SELECT contact_id FROM contacts WHERE contact = ? ORDER BY contact_id", (other["contact"],))
    return Case(
        me=me,
        slots={"contact": other["contact"], "city": other["city"], "what": _WHAT[pick(rng, list(_WHAT))]},
        looks=[
            calling("find_contacts", person_id=me["person_id"], name=other["contact"]),
            calling("get_contact", contact_id=other["contact_id"]),
        ],
        steps=2 + [one["contact_id"] for one in namesakes].index(other["contact_id"]),
        about={"contact_id": other["contact_id"]},
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    listed = yield ToolCall("find_contacts", {"person_id": me["person_id"], "name": slots["contact"]})
    for one in listed["contacts"]:
        found = yield ToolCall("get_contact", {"contact_id": one["contact_id"]})
        if found["city"] == slots["city"]:
            yield ToolCall("finish", {"answer": found[_asked(slots)]})


def _asked(slots: Mapping[str, str]) -> str:
    return next(field for field, words in _WHAT.items() if words == slots["what"])


REQUEST = Errand(
    name="look_up", book=phrasebook(_FRAMES, slots={"what": "|".join(_WHAT.values()), "city": "|".join(CITIES)}), case=_case, oracle=_oracle
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    case = REQUEST.case(world, rng, route, "")
    asks = _asked(case.slots)
    answer = world.get("contacts", case.about["contact_id"])[asks]
    return compose(world, rng, split, REQUEST, route, case, asks=asks, answer=answer, distractors=2)


FAMILY = Family(name="look_up", draft=_draft, capabilities=("lookup",))
