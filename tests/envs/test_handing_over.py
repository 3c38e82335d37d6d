"""A hand-over for missing permission counts whichever tool showed that it is missing."""

from collections import Counter

import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.world import WorldSession

HAND_OVER = ToolCall("hand_over", {"reason": "missing_permission"})


def others(kind: str, key: str) -> list[ToolCall]:
    """Calls that name a record: other ones than the oracle makes."""
    return {
        "order_id": [ToolCall("cancel_order", {"order_id": key, "reason": "found_cheaper"})],
        "user_id": [ToolCall("list_orders", {"user_id": key}), ToolCall("get_cart", {"user_id": key})],
        "thread_id": [ToolCall("move_mail", {"thread_id": key, "folder": "archive"})],
        "person_id": [ToolCall("list_events", {"person_id": key, "day": "2028-02-29"}), ToolCall("get_person", {"person_id": key})],
    }[kind]


@pytest.mark.parametrize("family", ["retail/not_allowed", "workspace/not_mine"])
def test_whatever_tool_showed_the_refusal_handing_over_is_right(family: str) -> None:
    env = ToolTask(worlds=[family.partition("/")[0]], split="test")
    kinds: Counter[str] = Counter()
    for task_id in env.tasks.ids("test", family)[:40]:
        task = env.tasks.get(task_id)
        if not task.spec["hand_over"]:
            continue
        ((kind, key),) = task.spec["look_first"][0]["arguments"].items()
        kinds[kind] += 1
        for call in others(kind, key):
            env.reset(seed=0, options={"task_id": task_id})
            assert env.step(call)[4]["status"] == "forbidden"
            assert env.last_record.milestones == ("tried",)
            assert env.step(HAND_OVER)[4]["ending"] == "success", call
        env.reset(seed=0, options={"task_id": task_id})
        assert env.step(HAND_OVER)[4]["ending"] == "abstained"
        table = {"order_id": "orders", "user_id": "users", "thread_id": "threads", "person_id": "people"}[kind]
        env.reset(seed=0, options={"task_id": task_id})
        assert isinstance(env.session, WorldSession)
        for row in env.session.world.query(f"SELECT {kind} AS key FROM {table} WHERE {kind} != ? ORDER BY 1 LIMIT 3", (key,)):
            env.step(others(kind, row["key"])[0])  # whatever else is somebody else's is not what was asked about
        assert env.step(HAND_OVER)[4]["ending"] != "success"
    assert len(kinds) == 2
    env.close()
