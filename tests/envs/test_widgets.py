"""The gallery of widgets, in the real browser: what solves each page, what does not, and what changes nothing."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agent_gym.core import ToolCall
from agent_gym.envs.worlds.widgets.families import BY_NAME
from agent_gym.envs.worlds.widgets.site import way
from agent_gym.errors import ConfigurationError

WEB, TOOL = "agent_gym:AgentBase/WebTask-v0", "agent_gym:AgentBase/ToolTask-v0"
FINISH = ToolCall("finish")
Given = Mapping[str, Any]


class Player:
    """Plays the gallery's tasks by names on the page."""

    def __init__(self, **keywords: Any) -> None:
        made: Any = gym.make(WEB, interface="text", disable_env_checker=True, worlds=["widgets"], engine="chromium", **keywords)
        self.env = made.unwrapped
        self.seen: list[Any] = []
        self.info: dict[str, Any] = {}
        self.done = False

    def reset(self, name: str, number: int, split: str = "train") -> None:
        observation, self.info = self.env.reset(seed=0, options={"task_id": f"widgets/{name}/{split}/{number}"})
        self.seen, self.done = [observation], False

    def open(self, name: str, number: int = 0) -> None:
        """Goes to the widget's page."""
        self.reset(name, number)
        self.act("click", BY_NAME[name].title)

    def step(self, call: ToolCall) -> str:
        observation, self.reward, terminated, truncated, self.info = self.env.step(call)
        self.seen.append(observation)
        self.done = terminated or truncated
        return str(self.info["status"])

    def act(self, tool: str, name: str = "", onto: str = "", **arguments: Any) -> str:
        """Does something to the element of that name, and gives the status."""
        bids = {one.get("name", ""): one["bid"] for one in reversed(self.view["elements"])}
        if onto:
            arguments = {"from_bid": bids[name], "to_bid": bids[onto]}
        elif name:
            arguments["bid"] = bids[name]
        return self.step(ToolCall(tool, arguments))

    def play(self, oracle: Callable[[], ToolCall]) -> list[ToolCall]:
        """Follows an oracle to the end, and gives what it did."""
        calls = []
        while not self.done:
            calls.append(oracle())
            self.step(calls[-1])
        return calls

    def by_oracle(self) -> list[ToolCall]:
        return self.play(lambda: self.env.oracle(self.seen))

    @property
    def view(self) -> dict[str, Any]:
        return dict(self.seen[-1]["data"]["view"])

    @property
    def slots(self) -> dict[str, str]:
        return dict(self.env.task.spec["params"])

    @property
    def given(self) -> Given:
        """What the page shows of the task."""
        return dict(json.loads(self.env.task.spec["setup"][0][2]["given"]))

    @property
    def changes(self) -> list[Any]:
        return list(self.env.last_record.changes)


@pytest.fixture
def player(needs_chromium: None) -> Iterator[Player]:  # noqa: ARG001 - pytest's way to need it
    made = Player()
    yield made
    made.env.close()


@pytest.mark.parametrize("name", BY_NAME)
def test_the_oracle_solves_tasks_from_what_the_pages_show_and_always_alike(player: Player, name: str) -> None:
    texts = []
    for number, split in ((0, "test"), (0, "train"), (0, "train")):
        player.reset(name, number, split)
        calls = player.by_oracle()
        assert player.info["ending"] == "success", f"{player.env.task.goal}: {player.env.last_record.checks}"
        texts.append([one["text"] for one in player.seen])
    assert texts[1] == texts[2]
    player.reset(name, 2)
    for call in calls:  # what solved another task
        player.step(call)
    assert player.info["ending"] == "failure"


@pytest.mark.parametrize("name", BY_NAME)
def test_doing_nothing_earns_nothing(player: Player, name: str) -> None:
    player.reset(name, 0)
    for call in (ToolCall("noop"), ToolCall("noop"), FINISH):
        player.step(call)
    assert (player.info["ending"], player.reward, player.changes) == ("failure", 0.0, [])


def other(things: list[str], right: str) -> str:
    return next(thing for thing in things if thing != right)


WRONG: dict[str, Callable[[Given, Mapping[str, str]], Mapping[str, str]]] = {
    "autocomplete": lambda given, right: {"person": other(given["people"], right["person"])},
    "confirm_dialog": lambda given, right: {**right, "file": other(given["files"], right["file"])},
    "date_picker": lambda _, right: {"day": "29" + right["day"][right["day"].index(" ") :]},
    "download": lambda given, right: {"file": other(given["files"], right["file"])},
    "drag_to_sort": lambda _, right: {"order": ", ".join(reversed(right["order"].split(", ")))},
    "iframe": lambda given, right: {**right, "speed": other(given["speeds"], right["speed"])},
    "infinite_list": lambda given, right: {"row": other(given["rows"], right["row"])},
    "modal": lambda given, right: {**right, "role": other(given["roles"], right["role"])},
    "native_select": lambda given, right: {**right, "city": other(given["places"][right["country"]], right["city"])},
    "nested_scroll": lambda given, right: {"plan": other(given["plans"], right["plan"])},
    "popup": lambda given, right: {"seat": other(given["seats"], right["seat"])},
    "replaced": lambda given, right: {"choice": other(given["choices"], right["choice"])},
    "rich_text": lambda _, right: {**right, "style": other(["bold", "italic"], right["style"])},
    "shadow_root": lambda _, right: {**right, "remark": right["remark"] + "!"},
    "slider": lambda _, right: {"level": str(int(right["level"]) ^ 1)},
    "upload": lambda _, right: {**right, "topic": other(["budget", "rota"], right["topic"])},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_fails(player: Player, name: str) -> None:
    player.reset(name, 0)
    wrong = ToolCall(name, dict(WRONG[name](player.given, player.slots)))
    calls = player.play(lambda: way(wrong, [one["data"]["view"] for one in player.seen]))
    assert calls[-1] == FINISH
    assert len(player.changes) == 1
    assert player.info["ending"] == "failure"


# --- Near misses: what one might take for done ---


def _autocomplete(player: Player) -> None:
    person = player.slots["person"]
    player.act("fill", "Person", value=person)  # typed out, but chosen from no list
    assert any(one.get("role") == "option" for one in player.view["elements"])
    assert player.act("click", "Save") == "conflict"
    player.act("press", "Person", key_comb="Escape")
    assert not any(one.get("role") == "option" for one in player.view["elements"])


def _confirm_dialog(player: Player) -> None:
    delete = f"Delete {player.slots['file']}"
    player.act("click", delete)
    assert player.act("click", "") != "ok"  # nothing else goes while it is open
    player.act("dismiss_dialog")
    player.act("click", delete)
    player.act("accept_dialog")
    assert player.view["outline"].startswith("! prompt dialog")
    player.act("dismiss_dialog")
    assert player.slots["file"] in player.view["outline"]


def _date_picker(player: Player) -> None:
    assert player.act("fill", "Date", value=player.slots["day"]) == "conflict"
    player.act("click", "Save")  # nothing is picked
    player.act("click", "Open calendar")
    player.act("click", next(one["name"] for one in player.view["elements"] if one.get("name", "").startswith("7 ")))


def _download(player: Player) -> None:
    player.act("click", f"Prepare {player.slots['file']}")
    assert player.view["downloads"] == []


def _drag_to_sort(player: Player) -> None:
    first, second, *_ = player.given["rows"]
    player.act("drag_and_drop", first, onto=second)
    assert player.view["outline"].index(second) < player.view["outline"].index(first)


def _iframe(player: Player) -> None:
    player.act("check", player.slots["speed"])
    assert player.act("click", "Use this") == "conflict"  # a note is wanted
    player.act("fill", "Note", value=player.slots["note"])
    assert player.act("click", "Save") == "conflict"  # nothing was used yet


def _infinite_list(player: Player) -> None:
    player.act("click", player.given["rows"][0])
    assert player.slots["row"] not in player.view["outline"]


def _modal(player: Player) -> None:
    for key in ("", "Escape"):
        player.act("click", "Edit member")
        assert player.act("click", "All widgets") == "conflict"  # it covers everything
        player.act("fill", "Name", value=player.slots["name"])
        player.act("select_option", "Role", options=player.slots["role"])
        if key:
            player.act("press", "Name", key_comb=key)
        else:
            player.act("click", "Cancel")
        assert player.given["name"] in player.view["outline"]


def _native_select(player: Player) -> None:
    assert player.act("select_option", "City", options=player.slots["city"]) in ("conflict", "not_found")
    player.act("select_option", "Country", options=player.slots["country"])
    player.act("click", "Save")  # without a city


def _nested_scroll(player: Player) -> None:
    plan = f"Agree to the {player.slots['plan']}"
    player.act("scroll_at", x=640, y=360, dx=0, dy=40)
    assert player.act("click", plan) == "conflict"


def _popup(player: Player) -> None:
    player.act("click", "Choose a seat")
    assert len(player.view["tabs"]) == 2
    player.act("tab_close")
    assert player.act("click", "Save") == "conflict"


def _replaced(player: Player) -> None:
    player.act("click", player.slots["choice"])
    assert "pressed" not in player.view["outline"]
    player.act("click", "Save")


def _rich_text(player: Player) -> None:
    player.act("fill", "Text", value=player.slots["text"])
    player.act("click", player.slots["style"].capitalize())


def _shadow_root(player: Player) -> None:
    player.act("click", f"{player.slots['stars']} stars")
    player.act("fill", "Remark", value=player.slots["remark"])


def _slider(player: Player) -> None:
    player.act("press", "Level", key_comb="Home")
    assert "Level: 0" in player.view["outline"]


def _toast(player: Player) -> None:
    player.act("click", "Show the code")
    code = player.given["code"]
    assert code in player.view["outline"]
    player.act("noop")
    assert code not in player.view["outline"]
    player.act("fill", "Code", value=code)


def _upload(player: Player) -> None:
    assert player.act("upload_file", "File", file="/etc/passwd") == "not_found"
    assert player.act("click", "Send") == "conflict"
    player.act("upload_file", "File", file=f"{player.slots['topic']}-{player.slots['year']}.txt")


@pytest.mark.parametrize(
    "miss",
    [
        _autocomplete,
        _confirm_dialog,
        _date_picker,
        _download,
        _drag_to_sort,
        _iframe,
        _infinite_list,
        _modal,
        _native_select,
        _nested_scroll,
        _popup,
        _replaced,
        _rich_text,
        _shadow_root,
        _slider,
        _toast,
        _upload,
    ],
    ids=lambda miss: miss.__name__[1:],
)
def test_a_near_miss_changes_nothing(player: Player, miss: Callable[[Player], None]) -> None:
    player.open(miss.__name__[1:])
    miss(player)
    player.step(FINISH)
    assert (player.info["ending"], player.changes) == ("failure", [])


def test_the_slider_follows_the_pointer(player: Player) -> None:
    player.open("slider")
    player.step(ToolCall("mouse_drag_and_drop", {"from_x": 300, "from_y": 198, "to_x": 640, "to_y": 198}))
    assert "Level: 50" in player.view["outline"]


def test_what_was_saved_is_still_told_when_the_page_is_loaded_again(player: Player) -> None:
    player.open("native_select")
    player.act("select_option", "Country", options="Japan")
    player.act("select_option", "City", options="Osaka")
    player.act("click", "Save")
    player.step(ToolCall("goto", {"url": "/native_select"}))
    assert "! Saved: Osaka, Japan" in player.view["outline"]
    player.step(FINISH)
    assert [(change.key, change.after["value"]) for change in player.changes] == [("native_select", "Osaka, Japan")]


def test_the_picture_of_a_popup_is_as_large_as_any(needs_chromium: None) -> None:  # noqa: ARG001
    player = Player(observation="both")
    player.open("popup")
    player.act("click", "Choose a seat")
    assert player.view["url"].endswith("/popup/seats")
    assert player.seen[-1] in player.env.observation_space
    player.env.close()


@pytest.mark.slow
def test_chance_plays_on_every_page_through_the_array_interface(needs_chromium: None) -> None:  # noqa: ARG001
    env: Any = gym.make(WEB, disable_env_checker=True, worlds=["widgets"], engine="chromium").unwrapped
    rng = np.random.default_rng(0)
    for number, (name, widget) in enumerate(BY_NAME.items()):
        env.reset(seed=number, options={"task_id": f"widgets/{name}/train/{number}"})
        link = next(one for one in env.observation.data["view"]["elements"] if one.get("name") == widget.title)
        *_, terminated, truncated, _ = env.step(env.candidates.index(ToolCall("click", {"bid": link["bid"]})))
        for _ in range(10):
            offered = np.flatnonzero(env.action_masks())
            assert len(offered) > 4
            *_, terminated, truncated, info = env.step(int(rng.choice(offered)))
            assert info["ending"] != "infra_error"
            if terminated or truncated:
                break
    env.close()


@pytest.mark.parametrize(("env_id", "keywords"), [(TOOL, {}), (WEB, {}), (WEB, {"engine": "inprocess"})])
def test_without_a_browser_the_gallery_is_refused(env_id: str, keywords: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"'widgets' is a gallery .* engine='chromium'"):
        gym.make(env_id, worlds=["widgets"], **keywords)


@pytest.mark.parametrize(("env_id", "keywords"), [(TOOL, {}), (WEB, {}), (WEB, {"engine": "chromium"})])
def test_the_gallery_is_asked_for_by_name(env_id: str, keywords: dict[str, Any]) -> None:
    env: Any = gym.make(env_id, interface="text", disable_env_checker=True, **keywords).unwrapped
    assert not any(family.startswith("widgets/") for family in env.tasks.families("train"))
