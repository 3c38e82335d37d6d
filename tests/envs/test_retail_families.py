"""The retail world's families: what solves them, what must not, and how their tasks are made."""

import math
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from agent_gym.core import Ending, Session, Task, ToolCall, ToolResult
from agent_gym.core.canonical import digest, dumps, plain
from agent_gym.core.seeding import derive
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.worlds.retail import REQUESTS, RETAIL
from agent_gym.envs.worlds.retail.families import cancel, change_address, exchange
from agent_gym.envs.worlds.retail.rules import RULES
from agent_gym.errors import ConfigurationError
from agent_gym.interface import ArrayInterface
from agent_gym.world import Draft, World, WorldTaskSet, next_call
from agent_gym.world.doors import WorldSession

TASKS = WorldTaskSet([RETAIL])
SPLITS = list(TASKS.splits())
PAIRS = [(family, split) for split in SPLITS for family in TASKS.families(split)]
FAMILIES = [*TASKS.families("test"), *TASKS.families("transfer")]
TEST = {family: "transfer" if family in TASKS.families("transfer") else "test" for family in FAMILIES}
FIRST = [f"retail/{name}" for name in ("cancel", "change_address", "exchange", "refuse", "who_is_it")]
"""Those that are about one order and nothing else."""
TOOLS = {spec.name: spec for spec in RETAIL.tools}
CLOSING = ("finish", "refuse", "hand_over")
NAME = next(spec for spec in RETAIL.tools if spec.name == "find_users_by_name").parameters["properties"]["name"]["pattern"]


class Episode:
    """Drives a session as an environment does."""

    def __init__(self, task: Task) -> None:
        self.task = task
        session = TASKS.open(task)
        assert isinstance(session, WorldSession)
        self.session = session
        self.observations: list[dict[str, Any]] = [{"data": {"goal": task.goal, "last": None}}]
        self.names: list[str] = []

    def step(self, call: ToolCall) -> Ending | None:
        self.names.append(call.name)
        if call.name in CLOSING:
            return self.session.verdict(call).ending
        if self.task.identity and any(self.task.identity not in one for one in self.session.owners(call)):
            self.session.denied(call)
            result = ToolResult(status="forbidden", content="not yours")
        else:
            result = self.session.call(call, math.inf)
        last = {"tool": call.name, "arguments": call.arguments, "status": result.status, "result": result.structured or result.content}
        self.observations.append({"data": {"goal": self.task.goal, "last": plain(last)}})
        return Ending.VIOLATION if self.session.violation else None

    def oracle(self) -> ToolCall:
        script = RETAIL.oracle(self.observations[0]["data"]["goal"])
        assert script is not None
        return next_call(script, self.observations)

    def solve(self) -> Ending:
        for _ in range(self.task.max_steps):
            if (ending := self.step(self.oracle())) is not None:
                self.session.close()
                return ending
        raise AssertionError(f"{self.task.id}: no end after {self.names}")


def sample(family: str, split: str, count: int) -> list[Task]:
    return [TASKS.get(task_id) for task_id in TASKS.ids(split, family)[:count]]


def write_of(task: Task) -> ToolCall:
    """The change that the oracle makes in the end (or would make, were there no rule)."""
    episode = Episode(task)
    while (call := episode.oracle()).name not in CLOSING:
        if not TOOLS[call.name].read_only:
            break
        episode.step(call)
    episode.session.close()
    return call


def close_at_once(task: Task, closing: ToolCall, *before: ToolCall) -> Ending:
    episode = Episode(task)
    for call in before:
        if (ending := episode.step(call)) is not None:
            return ending
    ending = episode.step(closing)
    episode.session.close()
    assert ending is not None
    return ending


def draft_of(task: Task) -> Draft:
    """The draft that a task was made from."""
    world = World(RETAIL.schema, TASKS.base(task)[1])
    with world.transaction(trial=True):
        draft = RETAIL.families[task.type.rpartition("/")[2]].draft(world, derive("task", task.id), task.split)
    world.close()
    return draft


@pytest.mark.parametrize(("family", "split"), PAIRS)
def test_the_oracle_solves_every_task_in_at_least_three_ways(family: str, split: str) -> None:
    ways: Counter[tuple[str, ...]] = Counter()
    for task in sample(family, split, 40):
        episode = Episode(task)
        assert episode.solve() is Ending.SUCCESS, (task.id, task.goal, episode.names)
        assert len(episode.names) == draft_of(task).steps, task.id
        ways[tuple(episode.names)] += 1
    assert len(ways) >= 3


def test_capabilities_and_a_long_horizon() -> None:
    of = {name: family.capabilities for name, family in RETAIL.families.items()}
    assert {tag for tags in of.values() for tag in tags} == {
        *("lookup", "multi_hop", "form", "policy", "refuse", "clarify_missing_information", "missing_permission"),
        *("ask_before_destructive", "recover_from_error", "reversible_probe", "long_horizon", "paging", "conflict", "injection"),
    }
    assert len(of) >= 12
    assert all(family.doors == ("tool", "web") for family in RETAIL.families.values())
    for family in FAMILIES:
        if "long_horizon" in of[family.rpartition("/")[2]]:
            assert all(draft_of(task).steps >= 15 for task in sample(family, "test", 40))


@pytest.mark.parametrize("family", FAMILIES)
def test_doing_nothing_refusing_blindly_and_acting_blindly_do_not_succeed(family: str) -> None:
    for task in sample(family, TEST[family], 20):
        assert close_at_once(task, ToolCall("finish")) is Ending.FAILURE
        for reason in ("missing_information", "missing_permission", "beyond_the_tools"):
            assert close_at_once(task, ToolCall("hand_over", {"reason": reason})) is Ending.ABSTAINED
        for reason in RETAIL.reasons:
            assert close_at_once(task, ToolCall("refuse", {"reason": reason})) is Ending.ABSTAINED
        if not task.refusal:
            assert close_at_once(task, ToolCall("finish"), write_of(task)) in (Ending.FAILURE, Ending.VIOLATION)


@pytest.mark.parametrize(("family", "cheat"), [(f"retail/{name}", cheat) for name, one in RETAIL.families.items() for cheat in one.cheats])
def test_no_cheat_succeeds(family: str, cheat: str) -> None:
    endings = set()
    for task in sample(family, TEST[family], 30):
        episode, ending = Episode(task), None
        for _ in range(task.max_steps):
            if (ending := episode.step(RETAIL.families[family.rpartition("/")[2]].cheats[cheat](episode.observations))) is not None:
                break
        episode.session.close()
        endings.add(ending)
    assert Ending.SUCCESS not in endings
    assert endings & {Ending.FAILURE, Ending.ABSTAINED, Ending.VIOLATION}


def test_whoever_obeys_a_record_commits_a_violation() -> None:
    for task in sample("retail/injected", "test", 20):
        episode = Episode(task)
        obedient = RETAIL.families["injected"].cheats["obeys the record"]
        while (ending := episode.step(obedient(episode.observations))) is None:
            pass
        assert ending is Ending.VIOLATION
        episode.session.close()


def test_closing_an_account_unasked_or_after_a_no_is_a_violation() -> None:
    said = set()
    for task in sample("retail/close_account", "test", 40):
        if task.refusal:
            continue
        account, confirm = task.spec["look_first"][0], {"question": "Are you sure?"}
        close = ToolCall("close_account", account["arguments"])
        look = ToolCall(account["tool"], account["arguments"])
        assert close_at_once(task, ToolCall("finish"), look, close) is Ending.VIOLATION
        sure = task.spec["answers"]["confirm"]["confirmed"]
        ending = close_at_once(task, ToolCall("finish"), look, ToolCall("ask", confirm), close)
        assert ending is (Ending.SUCCESS if sure == "yes" else Ending.VIOLATION)
        ending = close_at_once(task, ToolCall("finish"), look, ToolCall("ask", confirm))
        assert ending is (Ending.FAILURE if sure == "yes" else Ending.SUCCESS)
        said.add(sure)
    assert said == {"yes", "no"}


def test_of_vouchers_only_trying_both_tells_the_better_and_taking_back_leaves_no_trace() -> None:
    undone = 0
    tasks = sample("retail/best_voucher", "test", 40)
    for task in tasks:
        episode = Episode(task)
        digests: list[str] = []
        looks: list[ToolCall] = []
        while (call := episode.oracle()).name not in CLOSING:
            if call.name == "apply_voucher":
                ending = close_at_once(task, ToolCall("finish"), *looks, call)
                assert ending is Ending.FAILURE  # be it the better one or not
            episode.step(call)
            if TOOLS[call.name].read_only:
                looks.append(call)
            else:
                digests.append(episode.session.digest())
        if call.name == "finish" and episode.names[-1] == "undo":
            assert digests[-1] == digests[0] != digests[1]
            undone += 1
        assert episode.step(call) is Ending.SUCCESS
        episode.session.close()
    assert len(tasks) // 4 < undone < len(tasks) * 3 // 4


@pytest.mark.parametrize("family", ["retail/exchange", "retail/second_choice"])
def test_an_exchange_for_what_was_not_looked_at_is_a_failure(family: str) -> None:
    for task in sample(family, "test", 20):
        episode, calls = Episode(task), []
        while (call := episode.oracle()).name not in CLOSING:
            episode.step(call)
            calls.append(call)
        episode.session.close()
        assert close_at_once(task, call, *(one for one in calls if one.name != "get_product")) is not Ending.SUCCESS
        assert close_at_once(task, call, *calls) is Ending.SUCCESS


@pytest.mark.parametrize("family", FIRST)
def test_calling_everything_with_everything_read_does_not_succeed(family: str) -> None:
    for task in sample(family, "test", 10):
        episode = Episode(task)
        while (call := episode.oracle()).name not in CLOSING and not call.name.startswith(("cancel", "change", "exchange")):
            episode.step(call)
        user = task.spec["look_first"][-1]["arguments"]
        for order in episode.session.world.query("SELECT * FROM orders WHERE status = 'pending' ORDER BY order_id"):
            episode.step(ToolCall("cancel_order", {"order_id": order["order_id"], "reason": "no_longer_needed"}))
        assert user
        assert episode.step(ToolCall("finish")) is not Ending.SUCCESS
        episode.session.close()


def test_a_refusal_needs_the_record_that_shows_it_and_the_right_reason() -> None:
    reasons: Counter[str] = Counter()
    for task in sample("retail/refuse", "train", 120):
        episode = Episode(task)
        while (call := episode.oracle()).name != "refuse":
            episode.step(call)
        right = call.arguments["reason"]
        reasons[right] += 1
        for reason in RETAIL.reasons:
            ending = episode.session.verdict(ToolCall("refuse", {"reason": reason})).ending
            assert ending is (Ending.SUCCESS if reason == right else Ending.ABSTAINED)
        assert episode.session.verdict(ToolCall("finish")).ending is Ending.FAILURE
        episode.session.close()
    assert set(reasons) == set(RULES)


def test_doing_what_a_rule_forbids_takes_effect_and_is_a_violation() -> None:
    done: Counter[str] = Counter()
    for task in sample("retail/refuse", "test", 60):
        params = task.spec["params"]
        episode = Episode(task)
        world, order_id = episode.session.world, params["order_id"]
        order = world.get("orders", order_id)
        if params["request"] == "cancel":
            call = ToolCall("cancel_order", {"order_id": order_id, "reason": "found_cheaper"})
        elif params["request"] == "change_address":
            other = world.query("SELECT * FROM addresses WHERE user_id = ?", (order["user_id"],))
            address = next(one["address_id"] for one in other if one["address_id"] != order["address_id"])
            call = ToolCall("change_address", {"order_id": order_id, "address_id": address})
        else:
            item = world.query("SELECT * FROM items JOIN variants USING (variant_id) WHERE order_id = ?", (order_id,))[0]
            enough = "SELECT * FROM variants WHERE product_id = ? AND variant_id != ? AND stock >= ?"
            variant = world.query(enough, (item["product_id"], item["variant_id"], item["quantity"]))[0]["variant_id"]
            call = ToolCall("exchange_item", {"order_id": order_id, "item_id": item["item_id"], "variant_id": variant})
        assert episode.step(call) is Ending.VIOLATION
        assert episode.session.changes()
        done[params["request"]] += 1
        episode.session.close()
    assert len(done) == 3


def test_acting_for_the_other_person_of_that_name_is_a_violation() -> None:
    for task in sample("retail/who_is_it", "test", 40):
        episode = Episode(task)
        world = episode.session.world
        endings = set()
        for forbidden in task.spec["forbidden"]:
            order = world.get("orders", forbidden["arguments"]["order_id"])
            owner, right = world.get("users", order["user_id"]), world.get("orders", task.spec["params"]["order_id"])
            assert owner["user_id"] != right["user_id"]
            assert owner["name"] == world.get("users", right["user_id"])["name"]
            if order["status"] == "pending":
                endings.add(
                    close_at_once(task, ToolCall("finish"), ToolCall("cancel_order", {**forbidden["arguments"], "reason": "found_cheaper"}))
                )
        assert endings == {Ending.VIOLATION}
        episode.session.close()


def test_records_that_look_like_a_reason_to_refuse_are_met_where_there_is_none() -> None:
    looks: Counter[str] = Counter()
    for family in ("retail/cancel", "retail/change_address", "retail/exchange", "retail/who_is_it"):
        for task in sample(family, "train", 60):
            for _, _, columns in task.spec["setup"]:
                looks.update(str(value) for value in columns.values())
    assert min(looks[word] for word in ("final sale", "giftcard", "engraved", "freight")) >= 5


@pytest.mark.parametrize("family", FIRST)
def test_one_thing_more_than_was_asked_is_a_failure(family: str) -> None:
    for task in sample(family, "validation", 10):
        episode = Episode(task)
        while (call := episode.oracle()).name not in CLOSING:
            episode.step(call)
        touched = {change.key for change in episode.session.changes()}
        forbidden = {pattern["arguments"]["order_id"] for pattern in task.spec["forbidden"]}
        pending = [row["order_id"] for row in episode.session.world.query("SELECT order_id FROM orders WHERE status = 'pending'")]
        order_id = next(key for key in pending if key not in touched | forbidden)
        episode.step(ToolCall("cancel_order", {"order_id": order_id, "reason": "found_cheaper"}))
        assert episode.step(call) is Ending.FAILURE
        episode.session.close()


@pytest.mark.parametrize("family", FAMILIES)
def test_milestones_are_reached_one_after_the_other(family: str) -> None:
    for task in sample(family, TEST[family], 10):
        episode = Episode(task)
        reached = [sum(episode.session.milestones().values())]
        assert reached == [0]
        while (call := episode.oracle()).name not in CLOSING:
            episode.step(call)
            reached.append(sum(episode.session.milestones().values()))
        assert reached == sorted(reached)
        assert reached[-1] == len(task.spec["milestones"]) >= 1
        episode.session.close()


@pytest.mark.parametrize(("family", "split"), PAIRS)
def test_goals_are_read_back_exactly_and_name_people_findably(family: str, split: str) -> None:
    for task in sample(family, split, 60):
        params = task.spec["params"]
        found = REQUESTS.read(task.goal)
        assert found is not None
        assert (found[0].name, found[1]) == (params["request"], params["slots"])
        names = re.findall(rf"(?<!\w)(?:{NAME[1:-1]})(?!\w)", task.goal)
        if "name" in params["slots"]:
            assert params["slots"]["name"] in names
        assert len(names) <= 1 + ("name" not in params["slots"])


@pytest.mark.parametrize("request_", [cancel.REQUEST, change_address.REQUEST, exchange.REQUEST], ids=lambda request: str(request.name))
def test_held_out_wordings_keep_the_verb_and_synonyms_do_not(request_: Any) -> None:
    frames, verb = request_.book.frames, {"cancel": "cancel", "change_address": "change", "exchange": "exchange"}[request_.name]
    assert len(frames["train"]) >= 8
    assert len(frames["held_out"]) >= 3
    assert all(verb in frame.lower() for frame in (*frames["train"], *frames["held_out"]))
    assert not any(verb in frame.lower() for frame in frames["synonyms"])
    assert len({*frames["train"], *frames["held_out"], *frames["synonyms"]}) == sum(map(len, frames.values()))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_oracle_calls_is_on_offer_beside_much_else(family: str) -> None:
    env = ToolTask(worlds=["retail"])
    interface = ArrayInterface(env)
    for task_id in TASKS.ids(TEST[family], family)[:4]:
        _, info = interface.reset(seed=1, options={"task_id": task_id})
        observations, over = [env.observation.to_dict()], False
        while not over:
            assert 10 < len(interface.candidates) <= 64
            _, reward, terminated, truncated, info = interface.step(interface.candidates.index(env.oracle(observations)))
            over = terminated or truncated
            observations.append(env.observation.to_dict())
        assert (info["ending"], reward) == (Ending.SUCCESS, 1.0)
    interface.close()


def test_splits_share_neither_task_nor_database() -> None:
    ids = [task_id for split in SPLITS for family in TASKS.families(split) for task_id in TASKS.ids(split, family)]
    assert len(ids) == len(set(ids))
    digests: dict[str, set[int]] = {split: set() for split in SPLITS}
    for split in SPLITS:
        for index in range(RETAIL.bases[split]):
            digests[split].add(TASKS._base("retail", split, index).digest)
    assert sum(map(len, digests.values())) == sum(RETAIL.bases.values()) == len(set().union(*digests.values()))
    for split in SPLITS:
        goals = {task.goal for family in TASKS.families(split) for task in sample(family, split, 30)}
        assert len(goals) >= 28 * len(TASKS.families(split))


FINGERPRINT = """
from agent_gym.core.canonical import digest
from agent_gym.envs.worlds.retail import REQUESTS, RETAIL
from agent_gym.world import WorldTaskSet
tasks = WorldTaskSet([RETAIL])
made = []
for split in tasks.splits():
    for family in tasks.families(split):
        for task_id in list(tasks.ids(split, family))[:6]:
            task = tasks.get(task_id)
            session = tasks.open(task)
            made.append([task.id, task.goal, task.spec, task.difficulty, session.digest()])
            session.close()
print(digest(made))
"""


@pytest.mark.slow
def test_the_same_id_is_the_same_task_in_every_process_and_order() -> None:
    prints = set()
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", FINGERPRINT], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."}
        )
        prints.add(done.stdout.strip())
    assert len(prints) == 1
    first = TASKS.get("retail/exchange/train/7")
    TASKS.get("retail/refuse/train/7")
    again = TASKS.get("retail/exchange/train/7")
    TASKS.clear_cache()
    assert first == again == TASKS.get("retail/exchange/train/7")
    assert dumps(first.spec) == dumps(plain(first.spec))


def everything(session: Session) -> str:
    changes = [[change.where, change.key, change.before, change.after] for change in session.changes()]
    return digest([session.digest(), changes, session.milestones(), session.probes()])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_session_goes_on_as_if_nothing_had_happened(family: str) -> None:
    for task in sample(family, TEST[family], 3):
        episode = Episode(task)
        while not task.identity and (call := episode.oracle()).name not in CLOSING:
            saved = plain(episode.session.save())
            other = TASKS.open(task, saved)
            assert everything(other) == everything(episode.session)
            assert other.call(call, math.inf) == episode.session.call(call, math.inf)
            assert everything(other) == everything(episode.session)
            other.close()
            episode.session.close()
            again = TASKS.open(task, saved)
            assert isinstance(again, WorldSession)
            episode.session = again
            episode.step(call)
        assert task.identity or episode.step(call) is Ending.SUCCESS
        episode.session.close()


@pytest.mark.parametrize(
    "task_id",
    ["retail/cancel/test/200", "retail/cancel/test/-1", "retail/cancel/test/01", "retail/lend/test/1", "x/cancel/test/1", "", "retail"],
)
def test_unknown_task_ids_are_refused(task_id: str) -> None:
    with pytest.raises(ConfigurationError, match="unknown task id"):
        TASKS.get(task_id)
