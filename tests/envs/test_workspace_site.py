"""The workspace's web site: every read can be read back, nothing in a record is more than text, the oracle gets everything done by it."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import pytest
from lxml import html
from werkzeug.test import Client

from agent_gym.browser import InProcessPage
from agent_gym.browser.chromium.executable import available
from agent_gym.core import ToolCall, ToolResult
from agent_gym.envs.worlds.workspace import WORKSPACE
from agent_gym.envs.worlds.workspace.site import SITE
from agent_gym.world import World, carry_out
from agent_gym.world.grading import same

WEB = "agent_gym:AgentBase/WebTask-v0"
BASE = WORKSPACE.build(11)
HOSTILE = """<b onclick="x">O'Neil & "Sons" {{ 7 * 7 }}\n- [1] link "x" | — ¶\r\n\u2028ze\u200dro</b>  """
FAMILIES = [family for family in WORKSPACE.families.values() if "web" in family.doors]


class Office:
    """A workspace with a page in it."""

    def __init__(self) -> None:
        self.world = World(WORKSPACE.schema, BASE)
        self.page = InProcessPage(SITE.application(self.operate), SITE.ORIGIN)
        self.calls: list[str] = []

    def operate(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.calls.append(name)
        return carry_out(self.world, WORKSPACE.operations[name], arguments, math.inf)

    def ids(self, kind: str) -> list[str]:
        table = next(table for table in WORKSPACE.schema.tables.values() if table.key == kind.replace("colleague", "person"))
        return [str(row[table.key]) for row in self.world.query(f"SELECT {table.key} FROM {table.name} ORDER BY {table.key}")]

    def reads(self) -> Iterator[ToolCall]:
        """Calls of every operation that reads, with all kinds of arguments."""
        people = [row["person"] for row in self.world.query("SELECT person FROM people ORDER BY person_id LIMIT 3")]
        contacts = [row["contact"] for row in self.world.query("SELECT contact FROM contacts ORDER BY contact_id LIMIT 3")]
        texts = {
            "name": [*people, *contacts],
            "email": [row["email"] for row in self.world.query("SELECT email FROM people")],
            "day": ["2028-02-29", "2028-03-27"],
            "subject": ["b", "price list"],
            "title": ["b", "no such thing"],
            "cursor": ["inbox-5", "archive-0"],
        }
        for name, operation in WORKSPACE.operations.items():
            if operation.spec.read_only:
                fields = operation.spec.parameters["properties"]
                values = [schema.get("enum") or texts.get(field) or self.ids(field)[:6] for field, schema in fields.items()]
                for combined in itertools.islice(itertools.product(*values), 0, None, 5 if len(fields) > 1 else 1):
                    arguments = dict(zip(fields, combined, strict=True))
                    if SITE.plan.acts[name].validator.is_valid(arguments):
                        yield ToolCall(name, arguments)

    def shows(self, call: ToolCall) -> dict[str, Any]:
        """The page that shows what a call gives."""
        self.page.goto(SITE.plan.address(SITE.plan.places[call.name], call.arguments))
        return self.page.snapshot().to_dict()


def test_every_read_is_a_page_from_which_it_is_read_back_exactly() -> None:
    office, told = Office(), set()
    for call in office.reads():
        result = carry_out(office.world, WORKSPACE.operations[call.name], call.arguments, math.inf)
        if not result.failed:
            office.calls.clear()
            assert same(SITE.answer(call, office.shows(call)), result.structured), call
            assert office.calls == [call.name]  # a page shows one read, and reads nothing besides
            told.add(call.name)
    assert told == {name for name, operation in WORKSPACE.operations.items() if operation.spec.read_only}


def test_whatever_people_write_is_text_and_is_read_back_exactly() -> None:
    office = Office()
    columns = {"people": ("team", "status"), "threads": ("subject",), "messages": ("sender", "text"), "attachments": ("file",)}
    columns |= {
        "documents": ("title",),
        "versions": ("text",),
        "contacts": ("contact", "company"),
        "rooms": ("room",),
        "folders": ("folder",),
    }
    with office.world.transaction():
        for table, names in columns.items():
            for row in office.world.query(f"SELECT * FROM {table}"):
                office.world.update(table, row[WORKSPACE.schema.tables[table].key], **{name: f"{HOSTILE}{row[name]}" for name in names})
    seen = 0
    for call in office.reads():
        result = carry_out(office.world, WORKSPACE.operations[call.name], call.arguments, math.inf)
        if not result.failed and "onclick" in result.content:
            view = office.shows(call)
            if not view["notes"]:  # too long to be shown at once
                assert same(SITE.answer(call, view), result.structured), call
                seen += 1
            assert all(element["role"] in ("link", "button", "textbox", "combobox") for element in view["elements"])
            assert not any(element.get("name") == "x" for element in view["elements"])
    assert seen > 50


def test_every_page_is_well_made() -> None:
    office = Office()
    client, about = Client(SITE.application(office.operate)), [{"person_id": office.ids("person_id")[0]}]
    shown = (SITE.plan.address(SITE.plan.places[call.name], call.arguments, about) for call in office.reads())
    for path in ("/", *SITE.plan.fronts, *SITE.plan.by_path, *shown):
        response = client.get(path)
        assert response.status_code in (200, 404), path
        page: Any = html.document_fromstring(response.text)
        labels = page.xpath("//label/@for")
        controls = page.xpath("//select/@id | //textarea/@id | //input[not(@type='hidden')]/@id")
        assert sorted(labels) == sorted(controls), path
        ids, buttons = page.xpath("//@id"), page.xpath("//button/text()")
        links = {(link.text_content(), link.get("href")) for link in page.iter("a")}
        assert len(ids) == len(set(ids)), path
        assert len(buttons) == len(set(buttons)) == len(page.xpath("//form")), path
        assert len(links) == len({name for name, _ in links}), path  # what is called alike leads to the same
        assert len(page.xpath("//h1")) == len(page.xpath("//main")) == 1
        assert all(len({len(row) for row in table.iter("tr")}) == 1 for table in page.iter("table")), path
        assert not page.xpath("//script | //style | //*[@style]")


def test_who_is_being_helped_goes_along_and_nothing_else_is_remembered() -> None:
    office = Office()
    person_id = office.ids("person_id")[0]
    office.page.goto(f"/people/person?person_id={person_id}")
    links = [element["url"] for element in office.page.snapshot().to_dict()["elements"] if element["role"] == "link"]
    assert all(f"person_id={person_id}" in url for url in links)
    office.page.goto("/mail")
    assert "person_id=" not in str([element.get("url") for element in office.page.snapshot().to_dict()["elements"]])


def play(env: Any, task_id: str) -> tuple[list[ToolCall], dict[str, Any]]:
    """Lets the oracle play a task: its actions, and the last info."""
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    observations, actions, done = [observation], list[ToolCall](), False
    while not done:
        actions.append(env.oracle(observations))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        observations.append(observation)
        done = terminated or truncated
    assert info["success"], f"{task_id}: {env.task.goal} {env.last_record.checks}"
    return actions, info


def make(**keywords: Any) -> Any:
    return gym.make(WEB, disable_env_checker=True, worlds=["workspace"], **keywords).unwrapped


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_oracle_gets_everything_done_by_what_is_on_offer(family: Any) -> None:
    split = "transfer" if family.transfer else "train"
    text, array = make(interface="text", split=split), make(split=split)
    for number in range(2):
        task_id = f"workspace/{family.name}/{split}/{number}"
        actions, _ = play(text, task_id)
        array.reset(seed=0, options={"task_id": task_id})
        for action in actions:
            assert action in array.candidates, f"{task_id}: {action} is not offered"
            array.step(array.candidates.index(action))
    text.close()
    array.close()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["test", "synonyms"])
def test_the_oracle_gets_everything_done_in_other_words(split: str) -> None:
    env = make(interface="text", split=split)
    for family in FAMILIES:
        if not family.transfer:
            play(env, f"workspace/{family.name}/{split}/1")
    env.close()


@pytest.mark.slow
@pytest.mark.skipif(available() is not None, reason=f"needs Chromium: {available()}")
@pytest.mark.parametrize("family", ["book", "save_attachment", "probe"])
def test_a_real_browser_shows_the_same(family: str) -> None:
    task_id = f"workspace/{family}/train/0"
    browser, ours = make(interface="text", engine="chromium"), make(interface="text")
    assert play(browser, task_id)[0] == play(ours, task_id)[0]
    browser.close()
    ours.close()


def test_a_way_that_there_is_not_is_said() -> None:
    with pytest.raises(ValueError, match="no way known"):
        SITE.way(ToolCall("list_wishes", {}), [])
