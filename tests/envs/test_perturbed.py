"""Perturbed episodes: every task stays solvable, what is shown hangs together, and a reset can be had again."""

from typing import Any

import gymnasium as gym
import pytest

from agent_gym.core import Perturbation
from agent_gym.core.perturbation import KINDS, STRENGTHS
from agent_gym.core.seeding import derive_seed

TOOL, WEB, CODE = "AgentBase/ToolTask-v0", "AgentBase/WebTask-v0", "AgentBase/CodeTask-v0"
ALL = {"wording": True, "interface": True, "state": True, "strength": "strong", "seed": 3}


def made(env_id: str, interface: str = "text", **keywords: Any) -> Any:
    return gym.make(f"agent_gym:{env_id}", interface=interface, disable_env_checker=True, **keywords).unwrapped


def by_oracle(env: Any, task_id: str, perturbation: Any) -> tuple[list[Any], dict[str, Any]]:
    """Plays a task by its oracle: the observations, and the last info."""
    shown, info = env.reset(seed=1, options={"task_id": task_id, "perturbation": perturbation})
    seen, ended = [shown], False
    while not ended:
        shown, _, terminated, truncated, info = env.step(env.oracle(seen))
        seen.append(shown)
        ended = terminated or truncated
    return seen, info


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [TOOL, WEB, CODE])
def test_every_family_stays_solvable(env_id: str, request: pytest.FixtureRequest) -> None:
    if env_id == CODE:
        request.getfixturevalue("needs_sandbox")
    env = made(env_id)
    failed = []
    for split in {"test", "transfer"}.intersection(env.tasks.splits()):
        for family in env.tasks.families(split):
            ids = env.tasks.ids(split, family)
            task_id = ids[derive_seed("perturbed", family) % len(ids)]
            for kinds in [*((kind,) for kind in KINDS), KINDS]:
                for strength in STRENGTHS if len(kinds) == 1 else ["strong"]:
                    what = Perturbation(**dict.fromkeys(kinds, True), strength=strength, seed=derive_seed(task_id))
                    if by_oracle(env, task_id, what)[1]["ending"] != "success":
                        failed.append((task_id, what))
    env.close()
    assert not failed


def test_the_same_reset_shows_the_same_and_another_seed_something_else() -> None:
    env, other = made(TOOL), made(TOOL)
    task_id = "retail/exchange/test/4"
    first, _ = by_oracle(env, task_id, ALL)
    assert by_oracle(other, task_id, Perturbation.of(ALL))[0] == first
    assert {by_oracle(other, task_id, {**ALL, "seed": seed})[0][0]["text"] for seed in range(4)} != {first[0]["text"]}
    assert env.task.id == task_id
    plain, _ = by_oracle(env, task_id, None)
    assert plain[0]["data"]["goal"] != first[0]["data"]["goal"]
    assert "conventions" not in plain[0]["data"]


@pytest.mark.parametrize("interface", ["text", "array"])
@pytest.mark.parametrize(("env_id", "faults"), [(TOOL, None), (TOOL, 0.2), (WEB, None)])
def test_a_state_carries_the_perturbation(env_id: str, faults: float | None, interface: str) -> None:
    keywords = {} if faults is None else {"faults": faults}
    env, other = made(env_id, interface, **keywords), made(env_id, interface, **keywords)
    env.reset(seed=1, options={"task_id": "retail/cancel/test/2", "perturbation": ALL})
    seen = [env.observation.to_dict()]
    for _ in range(2):
        call = env.careful_oracle(seen)
        env.step(call if interface == "text" else env.candidates.index(call))
        seen.append(env.observation.to_dict())
    other.set_state(env.get_state())
    assert other.observation.to_dict() == env.observation.to_dict()
    assert other.last_record.digest == env.last_record.digest
    assert other.careful_oracle(seen) == env.careful_oracle(seen)
    assert env.get_state()["options"]["perturbation"] == ALL


def test_only_the_shown_names_are_known() -> None:
    env = made(TOOL)
    env.reset(seed=0, options={"task_id": "retail/cancel/test/2", "perturbation": {"interface": True, "strength": "strong", "seed": 1}})
    spec = next(spec for spec in env.tools if spec.name == "get_user")
    (name,) = spec.parameters["properties"]
    assert name != "user_id"
    assert spec.parameters["properties"][name]["x-entity"] == name
    assert env.step({"name": "get_user", "arguments": {"user_id": "U1234567"}})[4]["status"] == "invalid_arguments"
    shown, *_, info = env.step({"name": "get_user", "arguments": {name: "U1234567"}})
    assert info["status"] == "not_found"
    assert f"get_user({name}" in shown["text"]
    assert "Conventions: " in shown["text"]


def test_pages_speak_in_other_words() -> None:
    env = made(WEB)
    plain, info = by_oracle(env, "retail/exchange/test/3", None)
    other, perturbed = by_oracle(env, "retail/exchange/test/3", {"interface": True, "strength": "strong", "seed": 1})
    assert info["ending"] == perturbed["ending"] == "success"
    for before, after in zip(plain, other, strict=True):
        one, two = before["data"]["view"], after["data"]["view"]
        assert [(element["bid"], element["role"]) for element in one["elements"]] == [(e["bid"], e["role"]) for e in two["elements"]]
        assert one["url"] == two["url"]
    assert 'link "Orders"' in plain[0]["text"]
    assert 'link "Purchases"' in other[0]["text"]
    assert 'link "Orders"' not in other[0]["text"]


def test_an_answer_is_taken_as_it_was_read() -> None:
    env, answers = made(TOOL), set()
    for number in range(8):
        task_id, perturbation = f"retail/order_facts/test/{number}", {"interface": True, "strength": "strong", "seed": number}
        seen, info = by_oracle(env, task_id, perturbation)
        assert info["ending"] == "success"
        (read,) = _values(seen[-2]["data"]["last"]["result"], seen[0]["data"]["asks"])
        answers.add(str(read))
        env.reset(seed=1, options={"task_id": task_id, "perturbation": perturbation})
        for shown in seen[1:-1]:
            env.step({"name": shown["data"]["last"]["tool"], "arguments": shown["data"]["last"]["arguments"]})
        assert env.step({"name": "finish", "arguments": {"answer": str(read)}})[4]["ending"] == "success"
    assert any("'" in answer for answer in answers)
    assert any("/" in answer or answer.count(".") == 2 for answer in answers)


def _values(value: Any, field: str) -> Any:
    """Everything under a field's name."""
    if isinstance(value, dict):
        if field in value:
            yield value[field]
        for part in value.values():
            yield from _values(part, field)
    elif isinstance(value, list):
        for part in value:
            yield from _values(part, field)


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("family", ["retail/exchange", "workspace/share", "library/due"])
def test_policies_that_choose_have_the_right_call_on_offer(family: str, strength: str) -> None:
    env = made(TOOL, "array")
    split = "transfer" if family.startswith("library") else "test"
    env.reset(seed=0, options={"task_id": f"{family}/{split}/5", "perturbation": {**ALL, "strength": strength}})
    seen, ended = [env.observation.to_dict()], False
    while not ended:
        _, _, terminated, truncated, info = env.step(env.candidates.index(env.oracle(seen)))
        seen.append(env.observation.to_dict())
        ended = terminated or truncated
    assert info["ending"] == "success"


@pytest.mark.parametrize("task_id", ["retail/exchange/test/3", "workspace/book/test/3", "library/renew/transfer/3"])
def test_a_crowd_leaves_everything_that_was_there(task_id: str) -> None:
    def rows(perturbation: Any) -> set[Any]:
        env.reset(seed=0, options={"task_id": task_id, "perturbation": perturbation})
        world = env.unwrapped.rich.session.world
        found = set()
        for name, table in world.schema.tables.items():
            if not table.logs:
                found |= {(name, *row.values()) for row in world.query(f"SELECT * FROM {name}")}
        assert world.changes() == []
        assert world.digest() == world.recomputed_digest()
        assert world.query("SELECT * FROM pragma_foreign_key_check") == []
        return found

    env = made(TOOL)
    plain, mild, strong = rows(None), *(rows({"state": True, "strength": strength}) for strength in STRENGTHS)
    assert plain < mild
    assert plain < strong
    assert len(strong) > len(mild)


@pytest.mark.usefixtures("needs_sandbox")
def test_files_are_there_beforehand() -> None:
    env = made(CODE)
    shown, _ = env.reset(seed=0, options={"task_id": "functions/longest_rise", "perturbation": {"state": True}})
    names = [file["path"] for file in shown["data"]["view"]["files"]]
    assert len(names) == 3
    assert "solution.py" in names
    assert env.last_record.changes == ()
