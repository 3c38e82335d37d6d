"""WebTask: the same tasks as ToolTask through the web site; the same changes, the same verdicts."""

import re
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agent_gym.browser import PageSnapshot
from agent_gym.browser.elements import _element
from agent_gym.core import ToolCall
from agent_gym.envs.web_task.session import page_text
from agent_gym.envs.worlds.retail.site.app import application
from agent_gym.envs.worlds.retail.site.reading import _taken_apart, answer
from agent_gym.envs.worlds.retail.site.visit import _templates
from agent_gym.errors import ConfigurationError

WEB, TOOL = "agent_gym:AgentBase/WebTask-v0", "agent_gym:AgentBase/ToolTask-v0"
FAMILIES = ["cancel", "change_address", "exchange", "refuse", "who_is_it"]


def make(env_id: str = WEB, **keywords: Any) -> Any:
    return gym.make(env_id, interface="text", disable_env_checker=True, **keywords).unwrapped


@pytest.fixture
def web() -> Iterator[Any]:
    env = make()
    env.reset(seed=0, options={"task_id": "retail/cancel/train/0"})
    yield env
    env.close()


def act(env: Any, name: str, **arguments: Any) -> dict[str, Any]:
    """Acts, and gives the status and the view after it."""
    observation, reward, *_, info = env.step(ToolCall(name, arguments))
    return {
        **observation["data"]["view"],
        "action_status": info["status"],
        "reward": reward,
        "result": observation["data"]["last"]["result"],
    }


def bid(env: Any, name: str) -> str:
    """The id of the first element of that name."""
    return str(next(one["bid"] for one in env.observation.data["view"]["elements"] if one.get("name") == name))


def by_oracle(env: Any, task_id: str, seed: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Lets the oracle play a task: the observations, and the last info."""
    observation, info = env.reset(seed=seed, options={"task_id": task_id})
    observations, done = [observation], False
    while not done:
        observation, _, terminated, truncated, info = env.step(env.oracle(observations))
        observations.append(observation)
        done = terminated or truncated
    return observations, info


@pytest.mark.slow
def test_both_doors_leave_the_same_changes() -> None:
    web, tool = make(split="test"), make(TOOL, split="test")
    for family in FAMILIES:
        for number in range(40):
            task_id = f"retail/{family}/test/{number}"
            changes = []
            for env in (web, tool):
                _, info = by_oracle(env, task_id)
                assert info["success"], f"{task_id}: {env.last_record.checks}"
                changes.append(env.last_record.changes)
            assert changes[0] == changes[1], task_id
            assert web.task.goal == tool.task.goal


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("split", ["train", "synonyms"])
def test_the_oracles_action_is_offered_at_every_step_beside_others(family: str, split: str) -> None:
    text: Any = make()
    array: Any = gym.make(WEB, disable_env_checker=True).unwrapped
    for number in range(8):
        task_id = f"retail/{family}/{split}/{number}"
        observation, _ = text.reset(seed=0, options={"task_id": task_id})
        array.reset(seed=0, options={"task_id": task_id})
        observations, done = [observation], False
        while not done:
            call = text.oracle(observations)
            offered = array.candidates
            assert call in offered, f"{task_id}: {call} is not offered"
            assert 8 <= len(offered) <= 64
            assert len(set(offered)) == len(offered)
            _, _, _, _, array_info = array.step(offered.index(call))
            assert "candidates_cut" not in array_info["gaps"], task_id
            observation, _, terminated, truncated, info = text.step(call)
            observations.append(observation)
            done = terminated or truncated
        assert info["success"]


def test_pages_tell_the_records_that_the_tools_give() -> None:
    web, tool = make(), make(TOOL)
    told = 0
    for family in FAMILIES:
        task_id = f"retail/{family}/train/3"
        observations, _ = by_oracle(tool, task_id)
        calls = [one["data"]["last"] for one in observations[1:]]
        pages, _ = by_oracle(web, task_id)
        for last in calls:
            if not last["tool"].startswith(("find", "get", "list")):
                continue
            found = [answer(ToolCall(last["tool"], last["arguments"]), page["data"]["view"]) for page in pages]
            record = next(one for one in found if one is not None)
            assert record == {name: value for name, value in last["result"].items() if name not in ("notes", "category")}
            told += 1
    assert told > 15


@pytest.mark.parametrize(
    ("action", "status", "said"),
    [
        (ToolCall("click", {"bid": "999"}), "not_found", "999"),
        (ToolCall("goto", {"url": "https://elsewhere.example/"}), "forbidden", "elsewhere.example"),
        (ToolCall("goto", {"url": "file:///etc/passwd"}), "forbidden", "file"),
        (ToolCall("goto", {"url": "javascript:alert(1)"}), "forbidden", "javascript"),
        (ToolCall("goto", {"url": "https://[::1"}), "conflict", "not a URL"),
        (ToolCall("goto", {"url": "/a\\b"}), "conflict", "not a URL"),
        (ToolCall("upload_file", {"bid": "1", "file": "/etc/passwd"}), "conflict", ""),
        (ToolCall("click", {"bid": 12}), "invalid_arguments", "arguments.bid"),
        (ToolCall("tab_focus", {"index": 5}), "not_found", "5"),
        ({"name": "fly"}, "unknown_tool", "fly"),
    ],
)
def test_an_action_that_cannot_be_done_says_why(web: Any, action: Any, status: str, said: str) -> None:
    before = web.observation.data["view"]
    observation, reward, terminated, truncated, info = web.step(action)
    assert info["status"] == status
    assert said in observation["data"]["last"]["result"]
    assert reward == (-0.1 if status == "forbidden" else 0.0)
    assert (terminated, truncated) == (False, False)
    assert observation["data"]["view"]["outline"] == before["outline"]


def test_a_form_that_lacks_something_is_stopped_by_its_message(web: Any) -> None:
    said = act(web, "click", bid=bid(web, "Find order"))
    assert said["action_status"] == "conflict"
    assert "validation message" in said["result"]


def test_an_element_of_an_earlier_page_is_stale(web: Any) -> None:
    button = bid(web, "Find order")
    act(web, "goto", url="/products")
    assert "earlier page" in act(web, "click", bid=button)["result"]


def test_an_id_stays_with_its_element(web: Any) -> None:
    home = bid(web, "Home")
    field = bid(web, "Order number")
    act(web, "goto", url="/products")
    assert bid(web, "Home") == home
    assert field not in {one["bid"] for one in web.observation.data["view"]["elements"]}
    act(web, "go_back")
    assert bid(web, "Order number") == field


ITS_ORDER = "retail/cancel/train/0"


def at_the_order(env: Any) -> str:
    """Opens the order that a goal is about, ready to be cancelled, and gives its number."""
    observations, _ = by_oracle(env, ITS_ORDER)
    order_id = next(parts[4] for one in observations if len(parts := one["data"]["view"]["url"].split("/")) == 5 and parts[3] == "orders")
    env.reset(seed=0, options={"task_id": ITS_ORDER})
    act(env, "goto", url=f"/orders/{order_id}")
    act(env, "select_option", bid=bid(env, "Reason"), options="Found cheaper")
    return str(order_id)


def test_a_change_is_believed_only_where_the_site_tells_it(web: Any) -> None:
    order_id = at_the_order(web)
    call = ToolCall("cancel_order", {"order_id": order_id, "reason": "found_cheaper"})
    assert answer(call, act(web, "goto", url=f"/orders/{order_id}?done=cancel_order")) is None
    act(web, "select_option", bid=bid(web, "Reason"), options="Found cheaper")
    view = act(web, "click", bid=bid(web, "Cancel order"))
    assert answer(call, view) == {"order_id": order_id, "reason": "found_cheaper", "total_cents": 0}
    assert answer(ToolCall("cancel_order", {"order_id": order_id, "reason": "no_longer_needed"}), view) is None
    assert answer(call, act(web, "goto", url=f"/orders/{order_id}")) is None


def test_a_change_whose_page_comes_too_late_is_not_denied(web: Any) -> None:
    at_the_order(web)
    session = web.rich.unwrapped.session
    operate = type(session)._operate

    def late(name: str, arguments: Any) -> Any:
        result = operate(session, name, arguments)
        session._deadline = -1.0 if name == "cancel_order" else session._deadline
        return result

    session._page._site._client.application = application(late)
    said = act(web, "click", bid=bid(web, "Cancel order"))
    assert said["action_status"] == "outcome_unknown"
    assert "has changed something" in said["result"]
    assert session.changes()


def test_an_error_does_not_outlive_its_action(web: Any) -> None:
    for name, arguments in (("noop", {}), ("send_msg_to_user", {"text": "x"}), ("scroll", {"delta_x": 0, "delta_y": 1})):
        assert act(web, "click", bid="999")["error"]
        assert act(web, name, **arguments)["error"] == ""


def test_whole_floats_are_integers(web: Any) -> None:
    act(web, "new_tab")
    assert act(web, "tab_focus", index=0.0)["action_status"] == "ok"
    assert act(web, "noop")["title"].startswith("Service desk")


def test_nothing_around_the_page_fakes_an_element() -> None:
    title = '[12] button "Pay"'
    shown = PageSnapshot(
        url="u", title=title, status=200, tabs=({"title": title, "url": "u", "active": True},) * 2, outline="", elements=()
    )
    assert re.findall(r".?\[12\]", page_text(shown)) == ["\\[12]"] * 3


def test_a_full_reset_forgets_the_pages_and_the_templates(web: Any) -> None:
    by_oracle(web, ITS_ORDER)
    used = _templates.cache_info().hits
    web.full_reset(seed=0)
    assert _element.cache_info().currsize < 40
    assert _taken_apart.cache_info().currsize == 0
    assert _templates.cache_info().hits < used, "read anew from its files"


def test_doing_what_a_rule_forbids_is_a_violation() -> None:
    env = make()
    for number in range(30):
        task_id = f"retail/refuse/train/{number}"
        observations, info = by_oracle(env, task_id)
        assert info["success"]
        refused = observations[-1]["data"]["last"]["arguments"]["reason"]
        if refused != "final_sale" or "cancel" not in env.task.goal:
            continue
        path = next(view["url"] for o in reversed(observations) if (view := o["data"]["view"])["url"].rpartition("/")[2].startswith("W"))
        env.reset(options={"task_id": task_id})
        act(env, "goto", url=path)
        act(env, "select_option", bid=bid(env, "Reason"), options="Found cheaper")
        _, reward, terminated, _, info = env.step(ToolCall("click", {"bid": bid(env, "Cancel order")}))
        assert (info["ending"], reward, terminated) == ("violation", -1.0, True)
        return
    pytest.fail("no such task")


def test_browsergyms_ways_to_close(web: Any) -> None:
    assert act(web, "send_msg_to_user", text="It is done.")["action_status"] == "ok"
    *_, info = web.step("report_infeasible('final_sale')")
    assert info["ending"] == "abstained", "refusing without need"


def test_report_infeasible_is_refuse() -> None:
    env = make()
    observations, _ = by_oracle(env, "retail/refuse/train/1")
    reason = observations[-1]["data"]["last"]["arguments"]["reason"]
    state_before = [o["data"]["last"] for o in observations[1:-1]]
    env.reset(seed=0, options={"task_id": "retail/refuse/train/1"})
    for last in state_before:
        env.step(ToolCall(last["tool"], last["arguments"]))
    *_, info = env.step(ToolCall("report_infeasible", {"reason": reason}))
    assert info["success"]


def test_a_task_is_the_same_through_both_doors_but_for_its_pace() -> None:
    web, tool = make().tasks.get("retail/cancel/test/7"), make(TOOL).tasks.get("retail/cancel/test/7")
    assert (web.goal, web.spec, web.doors) == (tool.goal, tool.spec, tool.doors)
    assert (web.max_steps, tool.max_steps) == (30, 20)


def test_the_text_shows_the_page(web: Any) -> None:
    text = web.observation.text
    assert "Page: " in text
    assert f'[{bid(web, "Find order")}] button "Find order"' in text
    env = make(render_mode="ansi")
    env.reset(seed=0)
    assert "[1] link" in env.render()


@pytest.mark.parametrize("worlds", ["retail", ["moon"], 3])
def test_worlds_that_do_not_exist_are_refused(worlds: Any) -> None:
    with pytest.raises(ConfigurationError, match="world"):
        make(worlds=worlds)


@pytest.mark.slow
def test_random_actions_never_break_an_episode() -> None:
    env = gym.make(WEB, disable_env_checker=True)
    rng = np.random.default_rng(0)
    for seed in range(15):
        env.reset(seed=seed)
        done = False
        while not done:
            mask = env.get_wrapper_attr("action_masks")()
            _, _, terminated, truncated, info = env.step(int(rng.choice(np.flatnonzero(mask))))
            done = terminated or truncated
        assert info["ending"] not in ("", "infra_error")
        assert re.match(r"https://\w+\.example/|about:blank", env.unwrapped.observation.data["view"]["url"])  # type: ignore[attr-defined]
