"""Candidates: what is offered follows from what was read, hangs together, and holds the oracle's call."""

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import ToolCall, ToolSpec
from agent_gym.core.closing import closing_tools
from agent_gym.interface.candidates import Memory, Toolbox
from agent_gym.interface.features import CANDIDATES, COL_OVERLAP, COL_TRIED, Encoder
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory

TOOL_TASK = "agent_gym:AgentBase/ToolTask-v0"
FAMILIES = ["retail/cancel", "retail/change_address", "retail/exchange", "retail/refuse", "retail/who_is_it"]


def spec(name: str, **kinds: str) -> ToolSpec:
    properties: dict[str, Any] = {
        p: {"type": "string", "x-entity": kind, "pattern": f"^{kind[0].upper()}\\d+$"} for p, kind in kinds.items()
    }
    return ToolSpec(name=name, description="", parameters={"type": "object", "properties": properties, "required": list(properties)})


TOOLS = (
    spec("get_order", order_id="order_id"),
    spec("get_product", product_id="product_id"),
    spec("exchange", order_id="order_id", item_id="item_id", new="variant_id"),
    *closing_tools(["late", "broken"]),
)
ORDER = {"order_id": "O1", "items": [{"item_id": "I1", "product_id": "P1", "colour": "red"}, {"item_id": "I2", "product_id": "P2"}]}
PRODUCT = {"product_id": "P1", "variants": [{"variant_id": "V1", "colour": "red"}, {"variant_id": "V2", "colour": "blue"}]}


def seen(tool: str, result: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": {}, "status": "ok", "result": result}


def calls(memory: Memory, tool: str) -> list[dict[str, Any]]:
    return [candidate.call.arguments for candidate in memory.candidates(tool)[0]]


def test_entities_come_from_the_goal_and_from_results() -> None:
    memory = Memory("Exchange the red thing in order O1, not in XO17 or O18x.", Toolbox(TOOLS))
    assert calls(memory, "get_order") == [{"order_id": "O1"}]
    assert calls(memory, "get_product") == []
    memory.update(seen("get_order", ORDER))
    assert calls(memory, "get_product") == [{"product_id": "P1"}, {"product_id": "P2"}]
    assert calls(memory, "refuse") == [{"reason": "late"}, {"reason": "broken"}]
    assert calls(memory, "finish") == [{}]


def test_only_what_hangs_together_is_combined() -> None:
    memory = Memory("Exchange something.", Toolbox(TOOLS))
    memory.update(seen("get_order", ORDER))
    memory.update(seen("get_order", {"order_id": "O2", "items": [{"item_id": "I3", "product_id": "P2"}]}))
    memory.update(seen("get_product", PRODUCT))
    memory.update(seen("get_product", {"product_id": "P2", "variants": [{"variant_id": "V3"}]}))
    assert {(a["order_id"], a["item_id"], a["new"]) for a in calls(memory, "exchange")} == {
        ("O1", "I1", "V1"),
        ("O1", "I1", "V2"),
        ("O1", "I2", "V3"),
        ("O2", "I3", "V3"),
    }


def test_an_entity_is_described_by_the_record_it_is_the_subject_of() -> None:
    memory = Memory("The blue one.", Toolbox(TOOLS))
    memory.update(seen("get_order", ORDER))
    assert "red" in memory.words["item_id", "I1"]
    assert memory.words["product_id", "P1"] == ("i1", "p1", "red"), "until its own record is read, the last that names it"
    memory.update(seen("get_product", PRODUCT))
    memory.update(seen("get_order", ORDER))
    assert {"p1", "v1", "blue"} <= set(memory.words["product_id", "P1"])


def test_examples_of_a_text_are_offered() -> None:
    question = {"type": "string", "examples": ["Sure?", "Which size?"]}
    parameters = {"type": "object", "properties": {"question": question, "tone": {"type": "string"}}, "required": ["question"]}
    memory = Memory("Find out.", Toolbox([ToolSpec(name="ask", description="", parameters=parameters)]))
    assert calls(memory, "ask") == [{"question": "Sure?"}, {"question": "Which size?"}]


def test_what_a_field_of_the_wanted_name_had_can_be_answered() -> None:
    memory = Memory("Which price has the red one?", Toolbox(TOOLS))
    memory.update(None, asks="price")
    assert calls(memory, "finish") == [{}]
    items = [{"item_id": "I1", "colour": "red", "price": 1990}, {"item_id": "I2", "price": 0.5}, {"item_id": "I3", "price": None}]
    memory.update(seen("get_order", {"order_id": "O1", "prices": 7, "price": "free", "items": items}), asks="price")
    assert calls(memory, "finish") == [{}, {"answer": "free"}, {"answer": "1990"}, {"answer": "0.5"}]
    (answer,) = [
        candidate.entities["answer"] for candidate in memory.candidates("finish")[0] if candidate.call.arguments == {"answer": "1990"}
    ]
    assert memory.words[answer] == ("i1", "red", "1990"), "an answer is described by the record that it stands in"
    memory.update(
        seen("get_order", {"price": [["a"]], "more": [{"price": ["x", True]}, {"price": {"a": 1}}, {"price": "y" * 2_001}]}), asks="price"
    )
    assert calls(memory, "finish")[4:] == [{"answer": "x, true"}]
    memory = Memory("Which price has the red one?", Toolbox(TOOLS))
    memory.update(seen("get_order", {"price": 3}))
    assert calls(memory, "finish") == [{}]


def test_what_a_page_shows_under_the_wanted_name_can_be_answered() -> None:
    memory = Memory("Which unit price has the red one?", Toolbox(TOOLS))
    lines = [
        "# Order",
        "Unit price: $19.90",
        "Price: $7.00",
        "Items",
        "| Item | Unit price |",
        '| [3] link "I1" | [4] link "a \\| b" |',
    ]
    lines += ["| I2 |  |", "No unit price", "| Unit | Price |", "| x | y |"]
    memory.update(None, {"outline": "\n".join(lines)}, asks="unit_price_cents")
    assert calls(memory, "finish") == [{}, {"answer": "1990"}, {"answer": "a | b"}]


def test_several_patterns_each_find_what_they_can_in_the_goal() -> None:
    day, time = r"^\d{4}-\d\d-\d\d$", r"^\d{4}-\d\d-\d\d \d\d:\d\d$"
    value = {"type": "string", "x-find": [day, time]}
    tool = ToolSpec(name="say", description="Says.", parameters={"type": "object", "properties": {"value": value}, "required": ["value"]})
    memory = Memory("At 2028-02-29 10:00, not on 2028-03-01.", Toolbox((tool,)))
    assert calls(memory, "say") == [{"value": "2028-02-29"}, {"value": "2028-03-01"}, {"value": "2028-02-29 10:00"}]


def test_answers_do_not_crowd_out_the_rest() -> None:
    encoder = Encoder("Which price has the blue teapot of order O7?", Toolbox(TOOLS))
    items = [{"item_id": f"I{i}", "price": i, "what": "blue teapot" if i == 80 else "mug"} for i in range(100)]
    last = seen("get_order", {"orders": [{"order_id": "O7", "items": items}]})
    encoder.encode({"step": 1, "max_steps": 9, "last": last, "view": {}, "asks": "price"})
    assert {ToolCall("finish"), ToolCall("finish", {"answer": "80"}), ToolCall("get_order", {"order_id": "O7"})} <= set(encoder.calls)
    assert encoder.gaps == ("candidates_cut",)
    assert len(encoder.calls) == CANDIDATES


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("split", ["train", "test", "synonyms"])
def test_the_oracles_call_is_offered_at_every_step_beside_others(family: str, split: str) -> None:
    text = gym.make(TOOL_TASK, interface="text", families=[family], split=split).unwrapped
    array = gym.make(TOOL_TASK, families=[family], split=split).unwrapped
    for seed in range(12):
        observation, _ = text.reset(seed=seed)
        array.reset(seed=seed)
        observations, done = [observation], False
        while not done:
            call = text.oracle(observations)  # type: ignore[attr-defined]
            offered = array.candidates  # type: ignore[attr-defined]
            assert call in offered, f"{text.task.id}: {call} is not offered"  # type: ignore[attr-defined]
            assert 8 <= len(offered) <= CANDIDATES
            assert len(set(offered)) == len(offered)
            array.step(offered.index(call))
            observation, _, terminated, truncated, info = text.step(call)
            observations.append(observation)
            done = terminated or truncated
        assert info["success"]


def test_candidates_are_rebuilt_from_a_stored_trajectory(tmp_path: Any) -> None:
    env = RecordTrajectory(gym.make(TOOL_TASK), store=str(tmp_path))
    observation, _ = env.reset(seed=4)
    tools = env.get_wrapper_attr("tools")
    lived = [observation]
    rng = np.random.default_rng(0)
    done = False
    while not done:
        observation, _, terminated, truncated, _ = env.step(rng.choice(np.flatnonzero(env.get_wrapper_attr("action_masks")())))
        lived.append(observation)
        done = terminated or truncated
    env.close()
    store = TrajectoryStore(tmp_path)
    (episode,) = store.episodes()
    stored = [json.loads(step["obs_data"]) for step in store.steps(episode["episode_id"])]
    encoder = Encoder(stored[0]["goal"], Toolbox(tools))
    rebuilt = [encoder.encode(data) for data in stored]
    assert len(rebuilt) == len(lived)
    for one, other in zip(lived, rebuilt, strict=True):
        assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_when_there_are_too_many_those_that_share_most_with_the_goal_stay() -> None:
    encoder = Encoder("The order of the blue teapot.", Toolbox(TOOLS))
    orders = [{"order_id": f"O{i}", "product": "teapot" if i == 90 else "mug", "colour": "blue" if i > 80 else "grey"} for i in range(100)]
    arrays = encoder.encode({"step": 1, "max_steps": 9, "last": seen("list_orders", {"orders": orders}), "view": {}})
    assert encoder.gaps == ("candidates_cut",)
    assert arrays["action_mask"].sum() == CANDIDATES == len(encoder.calls)
    assert ToolCall("get_order", {"order_id": "O90"}) in encoder.calls
    assert ToolCall("get_order", {"order_id": "O95"}) in encoder.calls
    assert ToolCall("finish") in encoder.calls
    overlap = arrays["candidates"].reshape(CANDIDATES, -1)[:, COL_OVERLAP]
    assert encoder.calls[int(overlap.argmax())] == ToolCall("get_order", {"order_id": "O90"})


def test_no_tool_is_crowded_out_by_one_with_more_to_offer() -> None:
    encoder = Encoder("Make the parcel of O1 green.", Toolbox((spec("paint", a="order_id", b="hue_id"), *TOOLS)))
    hues = [{"hue_id": f"H{i}", "hue": "green parcel"} for i in range(30)]
    orders = [{"order_id": f"O{i}", "hues": hues} for i in range(1, 13)]
    reads = {ToolCall("get_order", {"order_id": order["order_id"]}) for order in orders}
    encoder.encode({"step": 1, "max_steps": 9, "last": seen("list_orders", {"orders": orders}), "view": {}})
    assert len(encoder.calls) == CANDIDATES
    assert reads < set(encoder.calls)
    more = [{"order_id": f"O{i}"} for i in range(13, 80)]
    first = ToolCall("get_order", {"order_id": "O2"})
    encoder.encode({"step": 2, "max_steps": 9, "last": seen("list_orders", {"orders": more}), "view": {}})
    assert first in encoder.calls
    read = {"tool": "get_order", "arguments": first.arguments, "status": "ok", "result": {}}
    encoder.encode({"step": 3, "max_steps": 9, "last": read, "view": {}})
    assert first not in encoder.calls, "what was tried goes first"


def test_of_equals_what_is_news_stays() -> None:
    named = " ".join(f"“pot {word}”" for word in ("a", "b", "c", "d", "e", "f", "g", "h"))
    find = {"type": "object", "properties": {"name": {"type": "string", "x-find": "(?<=“)[^”]+(?=”)"}}, "required": ["name"]}
    tools = [ToolSpec(name=f"find_{number}", description="", parameters=find) for number in range(16)]
    encoder = Encoder(f"Look for {named}.", Toolbox(tools))
    for step, word in enumerate("abcdefgh"):
        encoder.encode({"step": step, "max_steps": 9, "last": seen("find_0", {"name": f"pot {word}"}), "view": {}})
        assert len(encoder.calls) == CANDIDATES
        offered = {call.arguments["name"] for call in encoder.calls if call.name == "find_1"}
        assert f"pot {word}" in offered, "what the newest result showed"
        assert len(offered & {f"pot {later}" for later in "abcdefgh"[step + 1 :]}) == min(3, 7 - step), "what none has shown"


def test_what_was_tried_is_marked() -> None:
    encoder = Encoder("Order O1 and order O2.", Toolbox(TOOLS))
    encoder.encode({"step": 0, "max_steps": 9, "last": None, "view": {}})
    last = {"tool": "get_order", "arguments": {"order_id": "O2"}, "status": "not_found", "result": ""}
    arrays = encoder.encode({"step": 1, "max_steps": 9, "last": last, "view": {}})
    tried = arrays["candidates"].reshape(CANDIDATES, -1)[:, COL_TRIED]
    assert [encoder.calls[i] for i in np.flatnonzero(tried)] == [ToolCall("get_order", {"order_id": "O2"})]


def test_a_row_says_whether_its_arguments_stand_in_what_was_read() -> None:
    encoder = Encoder("Cancel order O1.", Toolbox(TOOLS))
    encoder.encode({"step": 0, "max_steps": 9, "last": None, "view": {}})
    encoder.encode({"step": 1, "max_steps": 9, "last": seen("get_order", {"order_id": "O1", "note": "it came broken"}), "view": {}})
    newest = encoder.encode({"step": 2, "max_steps": 9, "last": seen("get_product", {"product_id": "P1", "note": "late"}), "view": {}})
    rows = newest["candidates"].reshape(CANDIDATES, -1)
    refusals = {call.arguments["reason"]: rows[i, 64:66].tolist() for i, call in enumerate(encoder.calls) if call.name == "refuse"}
    assert refusals == {"late": [1.0, 1.0], "broken": [0.0, 1.0]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["order_id", "order_ids", "item_id", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(st.text(max_size=30), st.lists(JSON, max_size=4))
def test_whatever_a_tool_returns_the_arrays_stay_in_their_space(goal: str, results: list[Any]) -> None:
    env = gym.make(TOOL_TASK, disable_env_checker=True)
    encoder = Encoder(goal, Toolbox(TOOLS))
    for step, last in enumerate([None, *(seen("get_order", result) for result in results)]):
        assert env.observation_space.contains(encoder.encode({"step": step, "max_steps": 3, "last": last, "view": {}}))


PAGE_TOOLS = (
    ToolSpec(
        name="click",
        description="",
        parameters={
            "type": "object",
            "properties": {"bid": {"type": "string", "pattern": "^[0-9]+$", "x-entity": "bid"}},
            "required": ["bid"],
        },
    ),
    ToolSpec(
        name="select_option",
        description="",
        parameters={
            "type": "object",
            "properties": {"bid": {"type": "string", "x-entity": "bid"}, "options": {"type": "string", "x-entity": "option"}},
            "required": ["bid", "options"],
        },
    ),
    ToolSpec(
        name="fill",
        description="",
        parameters={
            "type": "object",
            "properties": {"bid": {"type": "string", "x-entity": "bid"}, "value": {"type": "string", "x-find": r"W\d+"}},
            "required": ["bid", "value"],
        },
    ),
)


def page(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"elements": list(elements), "outline": " ".join(str(element) for element in elements)}


def test_the_elements_of_a_page_are_on_offer_while_it_shows_them() -> None:
    memory = Memory("Cancel order W12 and then 7, or W345.", Toolbox(PAGE_TOOLS))
    memory.update(None, page())
    assert calls(memory, "click") == []
    link = {"bid": "1", "role": "link", "name": "Orders", "actions": ["click"]}
    size = {"bid": "2", "role": "combobox", "name": "Size", "options": ["S", "M"], "actions": ["select_option"]}
    hue = {"bid": "3", "role": "combobox", "name": "Hue", "options": ["M", "red"], "actions": ["select_option"]}
    box = {"bid": "4", "role": "textbox", "name": "Number", "actions": ["fill"]}
    still = {"bid": "5", "role": "button", "name": "Off", "states": ["disabled"]}
    memory.update(None, page(link, size, hue, box, still))
    assert calls(memory, "click") == [{"bid": "1"}]
    pairs = {(a["bid"], a["options"]) for a in calls(memory, "select_option")}
    assert pairs == {("2", "S"), ("2", "M"), ("3", "M"), ("3", "red")}
    assert calls(memory, "fill") == [{"bid": "4", "value": "W12"}, {"bid": "4", "value": "W345"}]
    memory.update(None, page(box, {**link, "bid": "6"}))
    assert calls(memory, "click") == [{"bid": "6"}]
    assert calls(memory, "select_option") == []
    memory.update(None, page(link))
    assert calls(memory, "click") == [{"bid": "1"}]
