"""Old mail: a mail far down in a long inbox, named by sender and day, is to be moved."""

from collections.abc import Mapping

import numpy as np

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.workspace.clock import wall
from agent_gym.envs.worlds.workspace.drafting import Case, Errand, compose
from agent_gym.envs.worlds.workspace.routes import account, phrasebook
from agent_gym.world import Draft, Family, Script, World, calling, pick

__all__ = ["FAMILY", "REQUEST"]

_FRAMES = {
    "train": (
        "{who} Please move the mail in my inbox from {sender} of {day} to {place}.",
        "{who} I want to move a mail to {place}: it is in my inbox, from {sender}, {day}.",
        "Could you move to {place} what I got from {sender} on {day}? It is in my inbox. {who}",
        "Move the mail of {day} by {sender} from my inbox to {place}. {who}",
        "{who} I need you to move a mail from {sender}, of {day}, from the inbox to {place}.",
        "{who} Kindly move what {sender} wrote on {day} from the inbox to {place}.",
    ),
    "held_out": (
        "{who} My request is to move a mail from the inbox to {place}; it is by {sender}, of {day}.",
        "To {place}, please move the mail in my inbox that {sender} sent on {day}. {who}",
        "{who} Can you move the inbox mail of {day} from {sender} to {place}?",
    ),
    "synonyms": (
        "{who} Please put what came to my inbox from {sender} on {day} into {place}.",
        "File the inbox mail by {sender} of {day} under {place}. {who}",
    ),
}
_PAGE = 5


def _inbox(world: World, me: Mapping[str, str]) -> list[dict[str, str]]:
    """Somebody's inbox in order: id, sender and day of each mail."""
    rows = world.query(
        "SELECT thread_id, newest_at, (SELECT sender FROM messages WHERE messages.thread_id = threads.thread_id"
        " ORDER BY sent_at, message_id LIMIT 1) AS sender FROM threads WHERE person_id = ? AND folder = 'inbox'"
        " ORDER BY newest_at DESC, thread_id",
        (me["person_id"],),
    )
    return [{"thread_id": row["thread_id"], "sender": row["sender"], "day": wall(row["newest_at"], me["time_zone"])[:10]} for row in rows]


def _case(world: World, rng: np.random.Generator, route: str, rule: str) -> Case:  # noqa: ARG001 - no rule forbids it
    busy = "SELECT * FROM people WHERE (SELECT count(*) FROM threads WHERE threads.person_id = people.person_id AND folder = 'inbox') > 10"
    me = pick(rng, world.query(f"{busy} ORDER BY person_id"))
    inbox = _inbox(world, me)
    marks = [(mail["sender"], mail["day"]) for mail in inbox]
    number = pick(rng, [number for number in range(_PAGE, len(inbox)) if marks.count(marks[number]) == 1])
    mail, place = inbox[number], pick(rng, ("archive", "spam"))
    return Case(
        me=me,
        slots={"sender": mail["sender"], "day": mail["day"], "place": place},
        looks=[calling("list_mail", person_id=me["person_id"], folder="inbox"), calling("get_thread", thread_id=mail["thread_id"])],
        steps=3 + number // _PAGE,
        rows=[{"table": "threads", "where": {"thread_id": mail["thread_id"]}, "values": {"folder": place}}],
        allowed=[{"table": "threads", "where": {"thread_id": mail["thread_id"]}, "columns": ["folder"]}],
    )


def _oracle(slots: Mapping[str, str]) -> Script:
    me = yield from account(slots)
    page = yield ToolCall("list_mail", {"person_id": me["person_id"], "folder": "inbox"})
    while True:
        marks = {(one["sender"], one["day"]): one["thread_id"] for one in page["threads"]}
        thread_id = marks.get((slots["sender"], slots["day"]), "")
        if thread_id or not page["cursor"]:
            break
        page = yield ToolCall("more_mail", {"person_id": me["person_id"], "cursor": page["cursor"]})
    yield ToolCall("get_thread", {"thread_id": thread_id})
    yield ToolCall("move_mail", {"thread_id": thread_id, "folder": slots["place"]})
    yield ToolCall("finish")


REQUEST = Errand(name="old_mail", book=phrasebook(_FRAMES), case=_case, oracle=_oracle)


def _draft(world: World, rng: np.random.Generator, split: str) -> Draft:
    route = pick(rng, REQUEST.routes)
    return compose(world, rng, split, REQUEST, route, REQUEST.case(world, rng, route, ""), distractors=6)


FAMILY = Family(name="old_mail", draft=_draft, capabilities=("paging",))
