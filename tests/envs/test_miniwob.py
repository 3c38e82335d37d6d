"""MiniWoB: the pages run as they are, judged by exactly what they say, and nothing of an episode is left in the next."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.bench import run_bench
from agent_gym.core import ToolCall, parse_action
from agent_gym.envs.miniwob import MiniWoB, pages
from agent_gym.envs.miniwob.tasks import SPLITS
from agent_gym.errors import ConfigurationError, MissingExtra
from agent_gym.evaluation.protocols import PROTOCOLS
from agent_gym.testing import CHECKS, Maker
from tests.envs import miniwob_pages

ID = "agent_gym:AgentBase/MiniWoB-v0"

pytestmark = pytest.mark.usefixtures("needs_miniwob")


class Player:
    """One environment, and what is to be seen in it."""

    def __init__(self, **keywords: Any) -> None:
        self.env = MiniWoB(**keywords)

    def open(self, page: str, number: int = 0, split: str = "train") -> None:
        observation, self.info = self.env.reset(seed=0, options={"task_id": f"miniwob/{page}/{split}-{number}"})
        self.seen = [observation]

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.seen[-1]["data"]
        return data

    def bid(self, name: str, role: str = "") -> str:
        elements = self.data["view"]["elements"]
        return next(str(one["bid"]) for one in elements if one.get("name") == name and role in ("", one["role"]))

    def middle(self, name: str) -> tuple[int, int]:
        left, top, width, height = next(one["box"] for one in self.data["view"]["elements"] if one.get("name") == name)
        return left + width // 2, top + height // 2

    def act(self, name: str, **arguments: Any) -> str:
        observation, self.reward, self.terminated, self.truncated, self.info = self.env.step(ToolCall(name, arguments))
        self.seen.append(observation)
        return str(self.info["status"])

    def told(self, expression: str) -> Any:
        return self.env.session._page.ask(expression)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    player = Player()
    yield player
    player.env.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_page_runs_offline_without_a_complaint_and_is_the_same_in_two_processes() -> None:
    other = subprocess.Popen(
        [sys.executable, "-m", "tests.envs.miniwob_pages", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        here = ["\t".join(line) for line in miniwob_pages.shown((), 3)]
        out, complaints = other.communicate()
    finally:
        other.kill()
    assert miniwob_pages.COMPLAINTS == []
    assert (complaints, other.returncode) == ("", 0)
    assert out.splitlines() == here
    assert len(here) == 128


def test_the_oracle_solves_a_page(player: Player) -> None:
    for number in range(3):
        player.open("click-button", number, "test")
        call = player.env.oracle(player.seen)
        player.act(call.name, **call.arguments)
        assert (player.info["success"], player.reward, player.terminated, player.truncated) == (True, 1.0, True, False)


def test_the_oracle_takes_over_whatever_was_done(player: Player) -> None:
    player.open("click-button")
    player.act("noop")
    player.act("click", bid="9999")
    call = player.env.oracle(player.seen)
    player.act(call.name, **call.arguments)
    assert player.info["success"]


def test_what_is_asked_is_the_goal_and_shown_once(player: Player) -> None:
    player.open("click-button")
    assert player.data["goal"] == 'Click on the "okay" button.'
    text = player.seen[-1]["text"]
    assert text.count("Click on the") == 1
    for hidden in ("Last reward", "Time left", "Episodes done", "START"):
        assert hidden not in text


def test_a_colour_that_is_asked_for_is_shown_where_no_word_says_it(player: Player) -> None:
    player.open("use-colorwheel-2")
    assert player.data["goal"] == "Select the following color with the color picker and hit Submit."
    assert player.data["view"]["elements"][0]["name"] == "#0198e3 cc"


def test_what_shows_something_has_a_number_and_a_box(player: Player) -> None:
    player.open("click-shape")
    elements = player.data["view"]["elements"]
    assert [one["name"] for one in elements] == ["cyan O", "green z", "yellow circle"]
    assert all(0 <= one["box"][0] < 160 and 50 <= one["box"][1] < 210 for one in elements)
    player.open("text-editor")
    assert {one["role"] for one in player.data["view"]["elements"]} == {"button", "img", "textbox"}
    assert all(one["box"][2] or one["box"][3] for one in player.data["view"]["elements"])
    assert [one["name"] for one in player.data["view"]["elements"] if one["role"] == "button"] == [
        "ql-bold",
        "ql-italic",
        "ql-underline",
        "Submit",
    ]


def test_a_flight_site_in_its_frame_is_filled_in(player: Player) -> None:
    player.open("flight.Alaska-auto")
    wanted = player.data["view"]["fields"]
    assert json.loads(player.data["goal"])["Departure City"] == wanted["Departure City"]
    assert pages.name_of(player.data["view"]["url"]) == "flight.Alaska-auto"
    box = next(one["bid"] for one in player.data["view"]["elements"] if one["role"] in ("textbox", "combobox", "searchbox"))
    assert player.act("fill", bid=box, value=wanted["Departure City"]) == "ok"
    assert wanted["Departure City"] in player.data["view"]["outline"]
    assert player.act("click", bid=player.bid("Contact us")) == "ok"
    assert wanted["Departure City"] in player.data["view"]["outline"], "what leads out of the page leads nowhere"


# --- Judging ---


def _tick_all_but(player: Player, left: int) -> None:
    player.open("click-checkboxes-large")
    names = player.data["goal"].removeprefix("Select ").removesuffix(" and click Submit.").split(", ")
    for name in names[left:]:
        player.act("check", bid=player.bid(name))
    player.act("click", bid=player.bid("Submit"))


def test_partial_credit_is_no_success(player: Player) -> None:
    _tick_all_but(player, 0)
    assert (player.info["success"], player.reward) == (True, 1.0)
    _tick_all_but(player, 1)
    assert (player.info["success"], player.info["ending"], player.terminated) == (False, "failure", True)
    assert 0 < player.reward < 1


@pytest.mark.parametrize(
    ("keywords", "right", "partly", "wrong"),
    [
        ({"reward_mode": "binary"}, 1.0, -1.0, -1.0),
        ({"reward_mode": "thresholded", "threshold": 0.5}, 1.0, 1.0, -1.0),
        ({"reward_mode": "original"}, 0.85, 0.625, -1.0),
    ],
)
def test_what_an_end_is_worth_is_not_whether_it_is_a_success(keywords: dict[str, Any], right: float, partly: float, wrong: float) -> None:
    player = Player(**keywords)
    _tick_all_but(player, 0)
    assert player.info["success"]
    assert player.reward == pytest.approx(right)
    _tick_all_but(player, 1)
    assert not player.info["success"]
    assert player.reward == pytest.approx(partly)
    player.open("click-test-2")
    player.act("click", bid=player.bid("TWO"))
    assert (player.info["success"], player.reward) == (False, wrong)
    player.env.close()


def test_too_many_steps_truncate_and_cost_nothing(player: Player) -> None:
    player.open("use-colorwheel")
    for _ in range(player.data["max_steps"]):
        player.act("scroll", delta_x=0, delta_y=0)
    assert (player.terminated, player.truncated, player.info["ending"], player.reward) == (False, True, "step_limit", 0.0)


@pytest.mark.parametrize(("call", "ending"), [(ToolCall("finish"), "failure"), (ToolCall("refuse", {"reason": "impossible"}), "abstained")])
def test_giving_up_is_worth_nothing(player: Player, call: ToolCall, ending: str) -> None:
    player.open("click-test")
    player.act(call.name, **call.arguments)
    assert (player.info["ending"], player.reward, player.info["success"]) == (ending, 0.0, False)


def test_the_last_observation_is_of_the_page_as_it_ended(player: Player) -> None:
    player.open("click-button")
    before = player.data["view"]["elements"]
    player.act("click", bid=player.bid("okay"))
    assert [one["name"] for one in player.data["view"]["elements"]] == [one.get("name", "") for one in before]
    assert player.env.last_record.changes[0].after["raw_reward"] == 1.0


def test_the_page_cannot_be_left_or_begun_again(player: Player) -> None:
    player.open("click-button")
    assert not {"goto", "go_back", "new_tab"} & {tool.name for tool in player.env.tools}
    before = player.told("WOB_EPISODE_ID"), player.data["view"]["outline"]
    player.told("void setTimeout(() => { location.href = '/miniwob/click-test.html'; })")
    player.told("void setTimeout(() => location.reload(), 1)")
    player.act("noop")
    assert (player.told("WOB_EPISODE_ID"), player.data["view"]["outline"]) == before


# --- What an episode leaves behind ---


def test_what_scripts_had_kept_is_gone(player: Player) -> None:
    player.open("click-test")
    player.told("void (window.planted = 1, localStorage.planted = 1)")
    player.act("click", bid=player.bid("Click Me!"))
    assert player.told("[core.wob_scores.length, WOB_EPISODE_ID]") == [1, 1]
    player.open("click-test")
    assert player.told("[core.wob_scores.length, WOB_EPISODE_ID, typeof planted, localStorage.length]") == [0, 0, "undefined", 0]


def test_a_button_that_is_held_is_let_go(player: Player) -> None:
    player.open("drag-box")
    x, y = player.middle("s")
    player.act("mouse_down", x=x, y=y)
    player.act("mouse_move", x=x + 9, y=y + 9)
    assert player.middle("s") == (x + 9, y + 9)
    player.open("drag-box")
    player.act("mouse_move", x=x, y=y)
    player.act("mouse_move", x=x + 9, y=y + 9)
    assert player.middle("s") == (x, y)


def test_a_date_that_no_seed_decides_is_pinned(player: Player) -> None:
    player.open("terminal")
    assert "Last login: Thu Jan 01 2026" in player.data["view"]["outline"]


def test_going_back_to_a_state_does_again_what_was_done(player: Player) -> None:
    player.open("enter-text")
    box = next(one["bid"] for one in player.data["view"]["elements"] if one["role"] == "textbox")
    player.act("fill", bid=box, value="half")
    state, seen = player.env.get_state(), player.seen[-1]
    player.act("fill", bid=box, value="more")
    assert player.env.set_state(state)[0] == seen


# --- Which tasks ---


def test_tasks_are_chosen_by_page() -> None:
    for task, least in (("click-test", 1), (["click-test", "click-test-2"], 2), ("all", 4)):
        env = MiniWoB(task=task)
        chosen = {env.reset(seed=seed)[1]["task_type"] for seed in range(6)}
        assert len(chosen) >= least
        assert len(env.tasks.families("test")) == (128 if task == "all" else least)  # what an evaluation draws from
        assert task == "all" or chosen <= set([task] if isinstance(task, str) else task)
        env.close()


def test_the_splits_share_no_seed() -> None:
    env = MiniWoB()
    seeds = {split: range(first, first + count) for split, (first, count) in SPLITS.items()}
    assert not any(set(one) & set(other) for name, one in seeds.items() for other_name, other in seeds.items() if name < other_name)
    assert env.tasks.get("miniwob/click-test/test-7").spec["seed"] == seeds["test"][7]
    assert len(env.tasks.ids("train", "click-test")) == len(seeds["train"])


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: MiniWoB(task="click-me"), "unknown page 'click-me'"),
        (lambda: MiniWoB(task="click-test", families=["click-test"]), "either task or families"),
        (lambda: MiniWoB(reward_mode="shaped"), "unknown reward_mode 'shaped'"),
        (lambda: MiniWoB(threshold=0.5), "needs reward_mode='thresholded'"),
        (lambda: MiniWoB(reward_mode="thresholded", threshold=2), "threshold must be a number in"),
        (lambda: MiniWoB().tasks.get("miniwob/hover-shape/train-0"), "left out: .* it never ends"),
        (lambda: MiniWoB().tasks.get("miniwob/click-test/train-1000000"), "tasks 0 to 999999"),
        (lambda: MiniWoB().tasks.get("click-test"), "ids look like"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Any], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        make()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    pages.folder.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    try:
        with pytest.raises(MissingExtra, match=r"agent-gym\[miniwob\]"):
            pages.folder()
    finally:
        pages.folder.cache_clear()


def test_the_package_itself_is_never_imported(player: Player) -> None:
    player.open("click-test")
    assert not any(name.partition(".")[0] in ("miniwob", "selenium") for name in sys.modules)


# --- Perturbations, candidates, measuring ---


def test_only_the_interface_of_a_page_can_be_perturbed(player: Player) -> None:
    options = {"task_id": "miniwob/click-test/train-0"}
    with pytest.raises(ConfigurationError, match="played as they are"):
        player.env.reset(seed=0, options={**options, "perturbation": {"wording": True}})
    observation, _ = player.env.reset(seed=0, options={**options, "perturbation": {"interface": True}})
    assert observation["data"]["goal"] == "Click the button."
    seen = [observation]
    info = player.env.step(player.env.ask(seen))[4]
    assert info["success"]


@pytest.mark.parametrize(
    ("page", "calls"),
    [
        ("enter-text", ["fill(bid='1', value='Agustina')", "click(bid='2')"]),
        ("login-user", ["fill(bid='2', value='karrie')", "fill(bid='4', value='AU')", "click(bid='5')"]),
        ("focus-text", ["click(bid='1')"]),
        ("choose-list", ["select_option(bid='1', options='Helli')", "click(bid='2')"]),
        ("drag-box", ["drag_and_drop(from_bid='1', to_bid='2')", "click(bid='3')"]),
    ],
)
def test_what_solves_a_page_is_among_the_candidates(page: str, calls: list[str]) -> None:
    env: Any = gymnasium.make(ID, task=page, disable_env_checker=True).unwrapped
    env.reset(seed=0, options={"task_id": f"miniwob/{page}/train-0"})
    for call in calls:
        *_, info = env.step(env.candidates.index(parse_action(call, env.tools)))
    assert info["success"]
    env.close()


def agent_gym(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([Path(sys.executable).with_name("agent-gym"), *arguments], capture_output=True, text=True)


def test_the_protocol_plays_as_many_episodes_of_every_page(tmp_path: Path) -> None:
    arguments = ["eval", "random-until-end", "AgentBase/MiniWoB-v0", "--protocol", "miniwob", "--tasks", "click-test,click-test-2"]
    result = agent_gym(*arguments, "--episodes", "3", "--json", "--store", str(tmp_path))
    told = json.loads(result.stdout)
    assert {page: part["episodes"] for page, part in told["by_task_type"].items()} == {"click-test": 3, "click-test-2": 3}
    assert told["by_task_type"]["click-test"]["success_rate"] == 1.0, "chance that never closes finds the only button"
    assert told["success_macro"] == pytest.approx((1 + told["by_task_type"]["click-test-2"]["success_rate"]) / 2)


def test_a_protocol_that_does_not_exist_is_refused() -> None:
    result = agent_gym("eval", "oracle", "AgentBase/MiniWoB-v0", "--protocol", "miniwobble")
    assert result.returncode == 2
    assert "unknown protocol 'miniwobble'" in result.stderr


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: PROTOCOLS["miniwob"].task_ids(MiniWoB().tasks, "test", ["click-test"], 1_001), "fewer than 1001 episodes"),
        (lambda: run_bench("web", against="selenium=/tmp"), "takes browsergym=PATH"),
        (lambda: run_bench("tools", against="browsergym=/tmp"), "measured against nobody"),
    ],
)
def test_what_cannot_be_measured_is_refused(make: Callable[[], Any], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        make()


# --- Conformance ---


@pytest.mark.parametrize(
    ("interface", "check"),
    [
        *(("array", check) for check in ("gymnasium", "stable_baselines3", "determinism", "spaces", "state", "close", "sync_vector")),
        ("text", "pickle"),
    ],
)
def test_conformance(interface: str, check: str) -> None:
    CHECKS[check](Maker(ID, {"interface": interface, "task": ["click-button", "click-shape"]}))
