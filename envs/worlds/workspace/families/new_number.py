"""New number: a contact wrote a mail with a new telephone number, which is to go into the address book."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose, not_calling
from agent_gym.envs.worlds.workspace.families.forward import mail_thing
from agent_gym.envs.worlds.workspace.routes import contact, phrasebook, thread
from agent_gym.envs.worlds.workspace.targets import a_contact, a_thread
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} In {thing} there is a new number of {contact} at {company}; please update the contact.",
        "{who} Please update {contact} of {company} in the address book: the number is in {thing}.",
        "Could you update the number of {contact} from {company}? It is in {thing}. {who}",
        "Update the contact {contact}, {company}, with the number from {thing}. {who}",
        "{who} I need you to update the number of {contact} at {company}; {thing} has the new one.",
        "{who} Kindly update the contact of {contact}, {company}, by what {thing} says.",
    ),
    "held_out": (
        "{who} My request is to update {contact} of {company}; see {thing} for the number.",
        "Can you update the number we have for {contact} of {company}? Read {thing}. {who}",
        "{who} By {thing}, the number of {contact} at {company} has changed, so update it.",
    ),
    "synonyms": (
        "{who} Please correct the phone of {contact} of {company} as {thing} says.",
        "Put what {thing} gives as new phone of {contact} from {company} into our records. {who}",
    ),
}


def _number(rng: np.random.Generator) -> str:
    return f"+{rng.integers(31, 50)} {rng.integers(100, 1_000)} {rng.integers(100_000, 1_000_000)}"


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    mail, other = a_thread(world, rng), a_contact(world, rng)
    thread_id, contact_id = mail["thread_id"], other["contact_id"]
    messages = world.query("SELECT message_id FROM messages WHERE thread_id = ? ORDER BY sent_at DESC, message_id", (thread_id,))
    numbers = [_number(rng) for _ in messages]
    for message, number in zip(messages, numbers, strict=True):
        text = f"You reach me under {number} now."
        world.update("messages", message["message_id"], sender=other["contact"], address=other["email"], text=text, number=number)
    return Case(
        me=world.get("people", mail["person_id"]),
        slots={"subject": mail["subject"], "thread_id": thread_id, "contact": other["contact"], "company": other["company"]},
        looks=[
            calling("get_thread", thread_id=thread_id),
            calling("find_contacts", person_id=mail["person_id"], name=other["contact"]),
            calling("get_contact", contact_id=contact_id),
        ],
        steps=4 + (route != "id"),
        rows=[{"table": "contacts", "where": {"contact_id": contact_id}, "values": {"phone": numbers[0]}}],
        allowed=[{"table": "contacts", "where": {"contact_id": contact_id}, "columns": ["phone"]}],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    mail = yield from thread(slots)
    other = yield from contact(slots, mail)
    yield ToolCall("get_contact", {"contact_id": other["contact_id"]})
    number = next((one["number"] for one in mail["messages"] if one["number"]), "")
    yield ToolCall("update_contact", {"contact_id": other["contact_id"], "number": number})
    yield ToolCall("finish")


REQUEST = Errand(
    name="new_number",
    book=phrasebook(_FRAMES, *mail_thing, by_id=("mail {thread_id}", "the mail {thread_id}")),
    case=_case,
    oracle=_oracle,
    routes=("number", "email", "team", "id"),
)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=2)


FAMILY = Family(
    name="new_number", draft=_draft, capabilities=("multi_hop",), cheats={"reads no entry": not_calling((REQUEST,), {"get_contact": {}})}
)
