"""The workspace's families: what solves them, what must not, and how their tasks are made."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agent_gym.core import Ending, Task, ToolCall
from agent_gym.core.closing import CLOSING
from agent_gym.core.seeding import derive
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds.workspace import REQUESTS, WORKSPACE
from agent_gym.envs.worlds.workspace.rules import RULES
from agent_gym.interface import ArrayInterface
from agent_gym.world import World, WorldTaskSet

TASKS = WorldTaskSet([WORKSPACE])
CASES = [(family, split) for split in TASKS.splits() for family in TASKS.families(split)]
FAMILIES = [
    (family, "transfer" if kind.transfer else "test") for family, kind in ((f"workspace/{n}", k) for n, k in WORKSPACE.families.items())
]
WRITES = {spec.name for spec in WORKSPACE.tools if not spec.read_only}
NAME = next(spec for spec in WORKSPACE.tools if spec.name == "find_people").parameters["properties"]["name"]["x-find"]
TAGS = (
    "lookup",
    "multi_hop",
    "form",
    "policy",
    "refuse",
    "clarify_missing_information",
    "missing_permission",
    "ask_before_destructive",
    "recover_from_error",
    "reversible_probe",
    "long_horizon",
    "paging",
    "conflict",
    "injection",
)


class Episode:
    """One episode through the front door of the environment."""

    def __init__(self, env: ToolTask, task_id: str) -> None:
        self.env = env
        observation, self.info = env.reset(seed=1, options={"task_id": task_id})
        self.observations: list[Mapping[str, Any]] = [observation]
        self.names: list[str] = []
        self.total = 0.0

    @property
    def task(self) -> Task:
        return self.env.task

    def step(self, call: ToolCall) -> Any:
        """Takes a step; gives the status of what was called."""
        observation, reward, _, _, self.info = self.env.step(call)
        self.observations.append(observation)
        self.names.append(call.name)
        self.total += reward
        return self.info["status"]

    def oracle(self) -> ToolCall:
        return self.env.oracle(self.observations)

    def follow(self, *until: str) -> ToolCall:
        """Follows the oracle until it wants one of these tools; gives that call."""
        while (call := self.oracle()).name not in until:
            self.step(call)
            assert not self.info["ending"], self.names
        return call

    def solve(self) -> str:
        self.step(self.follow(*CLOSING))
        ending: str = self.info["ending"]
        return ending


@pytest.fixture(scope="module")
def env() -> Any:
    made = ToolTask(worlds=["workspace"])
    yield made
    made.close()
    made.clear_caches()


def ids(family: str, split: str, count: int) -> Sequence[str]:
    return TASKS.ids(split, family)[:count]


def draft_of(task: Task) -> Any:
    kind, base = TASKS.base(task)
    world = World(WORKSPACE.schema, base)
    with world.transaction(trial=True):
        draft = kind.families[task.type.partition("/")[2]].draft(world, derive("task", task.id), task.split)
    world.close()
    return draft


@pytest.mark.parametrize(("family", "split"), CASES)
def test_the_oracle_solves_every_task_in_as_many_calls_as_the_draft_says_and_in_three_ways(env: ToolTask, family: str, split: str) -> None:
    ways: Counter[tuple[str, ...]] = Counter()
    for task_id in ids(family, split, 20):
        episode = Episode(env, task_id)
        assert episode.solve() == Ending.SUCCESS, (task_id, episode.task.goal, episode.names)
        assert len(episode.names) == draft_of(episode.task).steps, (task_id, episode.names)
        ways[tuple(episode.names)] += 1
    assert len(ways) >= 3


def test_every_capability_is_met_and_two_families_are_held_out() -> None:
    assert {tag for family in WORKSPACE.families.values() for tag in family.capabilities} == set(TAGS)
    assert sum(family.transfer for family in WORKSPACE.families.values()) == 2
    lengths = [draft_of(TASKS.get(task_id)).steps for task_id in ids("workspace/project", "test", 10)]
    assert min(lengths) >= 15


@pytest.mark.parametrize(("family", "split"), FAMILIES)
def test_neither_closing_at_once_nor_acting_blindly_nor_one_thing_more_succeeds(env: ToolTask, family: str, split: str) -> None:
    closings = [ToolCall("finish"), *(ToolCall("refuse", {"reason": reason}) for reason in RULES)]
    closings += [ToolCall("hand_over", {"reason": reason}) for reason in ("missing_permission", "missing_information", "beyond_the_tools")]
    for task_id in ids(family, split, 4):
        for closing in closings:
            episode = Episode(env, task_id)
            episode.step(closing)
            assert episode.info["ending"] in (Ending.FAILURE, Ending.ABSTAINED)
        episode = Episode(env, task_id)
        wanted = episode.follow(*WRITES, *CLOSING)
        if wanted.name in WRITES:
            blind = Episode(env, task_id)
            blind.step(wanted)
            if not blind.info["ending"]:
                blind.step(ToolCall("finish"))
            assert blind.info["ending"] in (Ending.FAILURE, Ending.VIOLATION)
        episode = Episode(env, task_id)
        closing = episode.follow(*CLOSING)
        used = str(episode.task.spec)
        contact = next(row for row in world_of(episode).query("SELECT * FROM contacts") if row["contact_id"] not in used)
        episode.step(ToolCall("update_contact", {"contact_id": contact["contact_id"], "number": "+44 123 456789"}))
        episode.step(closing)
        assert episode.info["ending"] == Ending.FAILURE


def world_of(episode: Episode) -> World:
    world: World = episode.env.session.world  # type: ignore[attr-defined]
    return world


CHEATS = [(family, split, name) for family, split in FAMILIES for name in WORKSPACE.families[family.partition("/")[2]].cheats]


@pytest.mark.parametrize(("family", "split", "name"), CHEATS)
def test_cheats_do_not_succeed(env: ToolTask, family: str, split: str, name: str) -> None:
    endings: Counter[str] = Counter()
    for task_id in ids(family, split, 12):
        episode = Episode(env, task_id)
        while not episode.info["ending"]:
            episode.step(WORKSPACE.families[family.partition("/")[2]].cheats[name](episode.observations))
        endings[episode.info["ending"]] += 1
    assert set(endings) <= {Ending.FAILURE, Ending.VIOLATION, Ending.ABSTAINED}


@pytest.mark.parametrize(("family", "split"), FAMILIES)
def test_milestones_are_reached_one_after_the_other(env: ToolTask, family: str, split: str) -> None:
    for task_id in ids(family, split, 4):
        episode = Episode(env, task_id)
        session = env.session
        reached = [sum(session.milestones().values())]
        while (call := episode.oracle()).name not in CLOSING:
            episode.step(call)
            reached.append(sum(session.milestones().values()))
        assert reached[0] == 0
        assert reached == sorted(reached)
        assert reached[-1] == len(episode.task.spec["milestones"]) >= 1


def test_a_project_is_done_in_any_order_and_not_without_reading(env: ToolTask) -> None:
    for task_id in ids("workspace/project", "test", 4):
        episode = Episode(env, task_id)
        while (call := episode.oracle()).name not in CLOSING:
            episode.step(call)
        calls = [ToolCall(one["data"]["last"]["tool"], one["data"]["last"]["arguments"]) for one in episode.observations[1:]]
        reads = [call for call in calls if call.name not in WRITES]
        writes = [call for call in calls if call.name in WRITES]
        unread = [call for call in reads if call.name != "get_thread"]
        for order, ending in (([*reads, *reversed(writes)], Ending.SUCCESS), ([*unread, *writes], Ending.FAILURE)):
            again = Episode(env, task_id)
            for call in [*order, ToolCall("finish")]:
                again.step(call)
            assert again.info["ending"] == ending


@pytest.mark.parametrize(("family", "split"), CASES)
def test_goals_are_read_back_exactly_and_what_they_name_is_found(family: str, split: str) -> None:
    for task_id in ids(family, split, 60):
        task = TASKS.get(task_id)
        found = REQUESTS.read(task.goal)
        assert found is not None
        slots = task.spec["params"]["slots"]
        assert found[1] == slots, task.goal
        named = {value for slot, value in slots.items() if slot in ("me", "colleague", "contact", "sender")}
        assert set(re.findall(rf"(?<!\w)(?:{NAME})(?!\w)", task.goal)) == named, task.goal


@pytest.mark.parametrize(("family", "split"), FAMILIES)
def test_what_the_oracle_calls_is_among_the_candidates(env: ToolTask, family: str, split: str) -> None:
    interface = ArrayInterface(env)
    for task_id in ids(family, split, 6):
        interface.reset(seed=1, options={"task_id": task_id})
        observations: list[Mapping[str, Any]] = [env.observation.to_dict()]
        over = False
        while not over:
            offered = interface.candidates
            assert len(offered) > 10
            _, _, terminated, truncated, info = interface.step(offered.index(env.oracle(observations)))
            over = terminated or truncated
            observations.append(env.observation.to_dict())
        assert info["ending"] == Ending.SUCCESS


@pytest.mark.parametrize("family", ["share", "book", "project", "refuse"])
def test_a_colleague_is_looked_up_by_name_or_by_account(env: ToolTask, family: str) -> None:
    endings: set[str] = set()
    for task_id in ids(f"workspace/{family}", dict(FAMILIES)[f"workspace/{family}"], 24 if family == "refuse" else 6):
        episode, calls = Episode(env, task_id), []
        while not episode.info["ending"]:
            calls.append(episode.oracle())
            episode.step(calls[-1])
        if "find_colleagues" not in episode.names or "find_people" in episode.names or episode.task.spec["refusal"] == "outside_hours":
            continue
        endings.add(calls[-1].name)
        slots = episode.task.spec["params"]["slots"]
        sql = "SELECT person_id, email FROM people WHERE person = ? AND team = ?"
        other = world_of(episode).query(sql, (slots["colleague"], slots["their_team"]))[0]
        named = ToolCall("find_people", {"name": slots["colleague"]})
        account = ToolCall("get_person", {"person_id": other["person_id"]})
        for instead, enough in (
            ([named, account], True),
            ([ToolCall("find_person", {"email": other["email"]})], True),
            ([named], False),
        ):
            again = Episode(env, task_id)
            for call in calls:
                for one in instead if call.name == "find_colleagues" else [call]:
                    again.step(one)
            assert (again.info["ending"] == Ending.SUCCESS) == enough, (task_id, again.names)
    assert endings == {"refuse" if family == "refuse" else "finish"}


def test_a_refusal_needs_the_right_reason_and_what_a_rule_forbids_takes_effect_and_is_a_violation(env: ToolTask) -> None:
    reasons: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for task_id in ids("workspace/refuse", "train", 60):
        episode = Episode(env, task_id)
        right = episode.follow("refuse").arguments["reason"]
        reasons[right] += 1
        wrong = next(reason for reason in RULES if reason != right)
        episode.step(ToolCall("refuse", {"reason": wrong}))
        assert episode.info["ending"] == Ending.ABSTAINED
        if (shortcut := shortcut_of(episode)) is not None:
            episode = Episode(env, task_id)
            assert episode.step(shortcut) == "ok"
            assert episode.info["ending"] == Ending.VIOLATION
            assert episode.info["reward_parts"]["violation"] < 0
            done[right] += 1
    assert set(reasons) == set(RULES)
    assert set(done) == set(RULES)


def shortcut_of(episode: Episode) -> ToolCall | None:
    """The change that was asked for, though a rule forbids it."""
    task, world = episode.task, world_of(episode)
    request, slots = task.spec["params"]["request"], task.spec["params"]["slots"]
    tool = task.spec["forbidden"][0]["tool"]
    known = {name: value for pattern in task.spec["forbidden"] for name, value in pattern["arguments"].items()}
    if request == "book":
        me = world.query("SELECT person_id FROM people WHERE ? IN (person_id, email) OR (person = ? AND team = ?)", who_in(slots))[0]
        return ToolCall(tool, {**me, **known, "starts": slots["starts"], "title": slots["title"]})
    if request == "share":
        other = world.query("SELECT person_id FROM people WHERE person = ? AND team = ?", (slots["colleague"], slots["their_team"]))[0]
        access = "reader" if slots["access"] == "to read" else "editor"
        return ToolCall(tool, {**known, "colleague_id": other["person_id"], "access": access})
    if request in ("share_outside", "forward"):
        other = world.query("SELECT contact_id FROM contacts WHERE contact = ? AND company = ?", (slots["contact"], slots["company"]))[0]
        key = "document_id" if request == "share_outside" else "thread_id"
        return ToolCall(tool, {key: known[key], **other})
    if request == "reschedule":
        return ToolCall("cancel_occurrence", {"occurrence_id": known["occurrence_id"]})
    more = {"link": {"link": "on"}, "rename": {"title": slots.get("new_title")}, "delete": {}}
    return ToolCall(tool, {**known, **more[request]})


def who_in(slots: Mapping[str, str]) -> tuple[str, str, str]:
    return slots.get("person_id") or slots.get("email", ""), slots.get("me", ""), slots.get("team", "")


def test_rules_that_do_not_forbid_a_request_hold_now_and_then_all_the_same() -> None:
    looks: Counter[str] = Counter()
    for family in ("rename", "share", "forward", "clean_up", "book"):
        for task_id in ids(f"workspace/{family}", "train", 60):
            for _, _, columns in TASKS.get(task_id).spec["setup"]:
                looks.update(str(value) for value in (columns or {}).values())
    assert min(looks[word] for word in ("confidential", "signed", "legal hold", "internal only", "on leave")) >= 5


def test_a_day_that_is_asked_about_has_more_meetings_than_one(env: ToolTask) -> None:
    for task_id in ids("workspace/meeting_facts", "test", 10):
        episode = Episode(env, task_id)
        day, read = (look["arguments"] for look in episode.task.spec["look_first"])
        events = WORKSPACE.operations["list_events"].run(world_of(episode), **day)["events"]
        assert len({one["event_id"] for one in events} - {read["event_id"]}) >= 1


def test_obeying_what_a_mail_says_is_a_violation(env: ToolTask) -> None:
    for task_id in ids("workspace/forward", "test", 10):
        for number, pattern in enumerate(TASKS.get(task_id).spec["forbidden"]):
            episode = Episode(env, task_id)
            episode.follow("forward_mail")
            thread = episode.task.spec["forbidden"][0]["arguments"]["thread_id"]
            more = {"move_mail": {"folder": "spam"}, "reply_mail": {"template": "agree"}}.get(pattern["tool"], {})
            assert episode.step(ToolCall(pattern["tool"], {"thread_id": thread, **pattern["arguments"], **more})) == "ok"
            assert episode.info["ending"] == Ending.VIOLATION, number
            assert episode.info["reward_parts"]["violation"] < 0


def test_mail_is_deleted_only_once_it_is_confirmed(env: ToolTask) -> None:
    endings: Counter[str] = Counter()
    for task_id in ids("workspace/clean_up", "test", 20):
        episode = Episode(env, task_id)
        thread = episode.task.spec["forbidden"][0]["arguments"]
        episode.follow("ask")
        assert episode.step(ToolCall("delete_mail", thread)) == "ok"
        assert episode.info["ending"] == Ending.VIOLATION
        episode = Episode(env, task_id)
        episode.follow("move_mail", "delete_mail")
        assert episode.step(ToolCall("delete_mail", thread)) == "ok"
        endings[episode.info["ending"] or "goes on"] += 1
    assert set(endings) == {Ending.VIOLATION, "goes on"}  # the answer may be no


def test_a_guess_in_place_of_a_question_is_a_violation_or_a_failure(env: ToolTask) -> None:
    for task_id in ids("workspace/which_one", "test", 10):
        answers = TASKS.get(task_id).spec["answers"]
        episode = Episode(env, task_id)
        move = episode.follow("move_mail")
        guess = Episode(env, task_id)
        guess.step(ToolCall("get_thread", {"thread_id": move.arguments["thread_id"]}))
        guess.step(move)
        guess.step(ToolCall("finish"))
        assert guess.info["ending"] == Ending.FAILURE
        assert answers


def test_what_belongs_to_others_is_out_of_reach_and_to_hand_over_is_right(env: ToolTask) -> None:
    kinds: Counter[str] = Counter()
    for task_id in ids("workspace/not_mine", "test", 20):
        episode = Episode(env, task_id)
        task = episode.task
        assert task.identity
        foreign = world_of(episode).query("SELECT * FROM threads WHERE person_id != ? ORDER BY thread_id LIMIT 1", (task.identity,))[0]
        for tool, arguments in (
            ("get_thread", {"thread_id": foreign["thread_id"]}),
            ("list_mail", {"person_id": foreign["person_id"], "folder": "inbox"}),
            ("move_mail", {"thread_id": foreign["thread_id"], "folder": "spam"}),
            ("delete_mail", {"thread_id": foreign["thread_id"]}),
        ):
            assert episode.step(ToolCall(tool, arguments)) == "forbidden"
        assert episode.total == pytest.approx(-0.4)
        assert episode.solve() == Ending.SUCCESS
        kinds[episode.names[-1]] += 1
    assert set(kinds) == {"finish", "hand_over"}


def test_trying_taking_back_and_trying_the_other_beats_guessing(env: ToolTask) -> None:
    taken_back = 0
    for task_id in ids("workspace/probe", "test", 20):
        episode = Episode(env, task_id)
        episode.follow("move_series")
        before = env.session.digest()
        slots = episode.task.spec["params"]["slots"]
        first = episode.follow("move_series")
        episode.step(first)
        taken_back += episode.oracle().name == "undo"  # or else it is the other time that somebody declines
        second = {**first.arguments, "starts": slots["otherwise"]}
        episode.step(ToolCall("undo"))
        assert env.session.digest() == before
        guess = Episode(env, task_id)
        guess.follow("move_series")
        guess.step(first)
        guess.step(ToolCall("move_series", second))  # without taking back: who declined stays away
        guess.step(ToolCall("finish"))
        assert guess.info["ending"] == Ending.FAILURE
    assert 4 <= taken_back <= 16


def test_what_somebody_else_does_meanwhile_is_met(env: ToolTask) -> None:
    conflicts = 0
    for task_id in ids("workspace/double_booking", "test", 15):
        episode = Episode(env, task_id)
        status = episode.step(episode.follow("create_event"))
        assert status == ("conflict" if episode.task.spec["events"] else "ok")
        conflicts += status == "conflict"
        assert episode.solve() == Ending.SUCCESS
    assert 4 <= conflicts <= 14


@pytest.mark.parametrize("family", ["probe", "double_booking", "clean_up", "not_mine"])
def test_a_saved_episode_goes_on_as_if_nothing_had_happened(env: ToolTask, family: str) -> None:
    for task_id in ids(f"workspace/{family}", "test", 3):
        episode = Episode(env, task_id)
        while not episode.info["ending"]:
            state, call = env.get_state(), episode.oracle()
            expected = env.step(call)
            env.set_state(state)
            assert env.step(call) == expected
            observation, reward, _, _, episode.info = expected
            episode.observations.append(observation)
        assert episode.info["ending"] == Ending.SUCCESS
        assert reward == 1.0


def test_splits_share_neither_task_nor_database() -> None:
    digests = {
        split: {TASKS.base(TASKS.get(task_id))[1].digest for task_id in TASKS.ids(split, TASKS.families(split)[0])[:12]}
        for split in TASKS.splits()
    }
    assert {split: len(found) for split, found in digests.items()} == dict(WORKSPACE.bases)
    assert len(set().union(*digests.values())) == sum(WORKSPACE.bases.values())
