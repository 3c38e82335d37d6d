"""Whoever acts as somebody in the workspace: what of others' is closed to them, table by table, and what is shared is not."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.tool_task import ToolTask
from agent_gym.world import World

TASKS = [f"workspace/not_mine/test/{number}" for number in range(6)]

NOT_SHARED = "document_id NOT IN (SELECT document_id FROM shares WHERE colleague_id = :me) AND documents.person_id != :me"
NOT_INVITED = "event_id NOT IN (SELECT event_id FROM attendees WHERE person_id = :me)"
VERSIONS = "versions JOIN documents USING (document_id)"
FOREIGN: dict[str, tuple[str, dict[str, dict[str, str]]]] = {
    "people": ("SELECT person_id FROM people WHERE person_id != :me", {"get_person": {}}),
    "folders": ("SELECT folder_id FROM folders WHERE person_id != :me", {"list_folder": {}}),
    "threads": ("SELECT thread_id FROM threads WHERE person_id != :me", {"reply_mail": {"template": "agree"}}),
    "attachments": (
        "SELECT attachment_id, (SELECT folder_id FROM folders WHERE person_id = :me LIMIT 1) AS folder_id"
        " FROM attachments JOIN threads USING (thread_id) WHERE person_id != :me",
        {"save_attachment": {}},
    ),
    "documents": (
        f"SELECT document_id FROM documents WHERE {NOT_SHARED}",
        {"get_document": {}, "rename_document": {"title": "mine now"}, "set_link": {"link": "on"}},
    ),
    "versions": (
        f"SELECT version_id, (SELECT document_id FROM documents WHERE person_id = :me LIMIT 1) AS document_id FROM {VERSIONS}"
        f" WHERE {NOT_SHARED}",
        {"restore_version": {}},
    ),
    "shares": (
        "SELECT share_id FROM shares JOIN documents USING (document_id) WHERE person_id != :me AND colleague_id IS NOT :me",
        {"unshare": {}},
    ),
    "events": (
        f"SELECT event_id FROM events WHERE {NOT_INVITED}",
        {"get_event": {}, "cancel_series": {}, "move_series": {"starts": "2028-03-01 10:00"}},
    ),
    "occurrences": (
        f"SELECT occurrence_id FROM occurrences WHERE {NOT_INVITED}",
        {"cancel_occurrence": {}, "move_occurrence": {"starts": "2028-03-01 10:00"}},
    ),
}
"""By table a row that is somebody else's, and calls that name it."""
OWN = {
    "documents": ("SELECT document_id FROM documents WHERE person_id = :me", "get_document"),
    "given": ("SELECT document_id FROM shares WHERE colleague_id = :me AND access != 'none'", "get_document"),
    "shares": ("SELECT share_id FROM shares JOIN documents USING (document_id) WHERE person_id = :me AND access != 'none'", "unshare"),
    "received": ("SELECT share_id FROM shares WHERE colleague_id = :me AND access != 'none'", "unshare"),
    "versions": (
        f"SELECT version_id, document_id FROM {VERSIONS} WHERE number < version AND"
        " (person_id = :me OR document_id IN (SELECT document_id FROM shares WHERE colleague_id = :me AND access != 'none'))",
        "restore_version",
    ),
    "events": ("SELECT event_id FROM attendees WHERE person_id = :me", "get_event"),
    "invited": (
        "SELECT event_id FROM attendees JOIN events USING (event_id) WHERE attendees.person_id = :me AND events.person_id != :me",
        "get_event",
    ),
    "occurrences": (
        "SELECT occurrence_id FROM occurrences JOIN attendees USING (event_id) WHERE person_id = :me AND state = 'on'",
        "cancel_occurrence",
    ),
}
"""Rows that are an identity's own, or that it shares, and a call that names each."""


@pytest.fixture
def env() -> Iterator[ToolTask]:
    made = ToolTask(worlds=["workspace"])
    yield made
    made.close()
    made.clear_caches()


def status(env: ToolTask, call: ToolCall) -> Any:
    return env.step(call)[4]["status"]


def first_row(env: ToolTask, sql: str) -> dict[str, Any] | None:
    """The first row of a query about the task's identity."""
    world: World = env.session.world  # type: ignore[attr-defined]
    found = world.query(f"{sql} LIMIT 1".replace(":me", f"'{env.task.identity}'"))
    return found[0] if found else None


@pytest.mark.parametrize("table", FOREIGN)
def test_no_row_of_others_is_open_to_an_identity(env: ToolTask, table: str) -> None:
    sql, calls = FOREIGN[table]
    for task_id in TASKS[:3]:
        env.reset(seed=1, options={"task_id": task_id})
        row = first_row(env, sql)
        assert row is not None
        for tool, more in calls.items():
            assert status(env, ToolCall(tool, {**row, **more})) == "forbidden"
        assert env.session.changes() == []


@pytest.mark.parametrize("name", OWN)
def test_what_is_shared_is_open_to_all_who_share_it(env: ToolTask, name: str) -> None:
    sql, tool = OWN[name]
    tried = 0
    for task_id in TASKS:
        env.reset(seed=1, options={"task_id": task_id})
        if (row := first_row(env, sql)) is not None:
            assert status(env, ToolCall(tool, row)) == "ok"
            tried += 1
    assert tried


def test_a_share_that_was_taken_back_closes_the_document(env: ToolTask) -> None:
    for task_id in TASKS:
        env.reset(seed=1, options={"task_id": task_id})
        if (row := first_row(env, OWN["received"][0].replace("share_id", "share_id, document_id", 1))) is None:
            continue
        document = ToolCall("get_document", {"document_id": row["document_id"]})
        assert status(env, document) == "ok"
        assert status(env, ToolCall("unshare", {"share_id": row["share_id"]})) == "ok"
        assert status(env, document) == "forbidden"
        return
    raise AssertionError("nobody was given a document")
