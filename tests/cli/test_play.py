"""A person plays: what is typed, what is shown, what is recorded."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app
from agent_gym.trajectories import TrajectoryStore

TOOL, CODE, WEB = "AgentBase/ToolTask-v0", "AgentBase/CodeTask-v0", "AgentBase/WebTask-v0"
TASK = "retail/cancel/train/3"


def played(*lines: str, options: tuple[str, ...] = ("--task", TASK), env_id: str = TOOL, store: Path | None = None) -> str:
    """What play prints for these lines."""
    kept = ["--no-record"] if store is None else ["--store", str(store)]
    typed = "".join(f"{line}\n" for line in lines)
    result: Result = CliRunner().invoke(app, ["play", env_id, *options, *kept], input=typed, env={"COLUMNS": "100"})
    assert (result.exit_code, result.exception) == (0, None), result.output
    return result.stdout


def recorded(store: Path) -> list[dict[str, Any]]:
    return TrajectoryStore(store).episodes()


@pytest.fixture(scope="module")
def solution() -> list[str]:
    """The oracle's calls, as text."""
    return [str(call) for call in oracle_calls(TOOL, TASK)]


def oracle_calls(env_id: str, task_id: str) -> Iterator[Any]:
    env: Any = gymnasium.make(env_id, interface="text", disable_env_checker=True).unwrapped
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    seen = [observation]
    while not info["ending"]:
        call = env.oracle(seen)
        observation, *_, info = env.step(call)
        seen.append(observation)
        yield call
    env.close()


def test_right_moves_win_and_are_kept_as_a_persons(solution: list[str], tmp_path: Path) -> None:
    shown = played(*solution, store=tmp_path)
    assert "Goal" in shown
    assert "Rules" in shown
    assert "get_order(order_id)" in shown
    assert f"Step {len(solution)} of" in shown
    assert "The end: success" in shown
    assert "look_first" in shown
    assert "status pending → cancelled" in shown
    (episode,) = recorded(tmp_path)
    assert (episode["source"], episode["policy_id"], episode["task_id"]) == ("human", "human", TASK)
    assert (episode["outcome"], episode["n_turns"], episode["reward_total"]) == ("success", len(solution), 1.0)
    assert episode["episode_id"] in shown


def test_the_rules_are_shown_once_and_again_when_asked_for(solution: list[str]) -> None:
    assert played(*solution[:2]).count("\nRules\n") == 1
    assert played(*solution[:2], "rules").count("\nRules\n") == 2


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("hello", "'hello' is neither a command nor a tool"),
        ("undoo", "did you mean 'undo'?"),
        ('get_ordr("W1")', "there is no tool 'get_ordr'; did you mean 'get_order'?; 'tools' lists them"),
        ('{"name": "fly", "arguments": {}}', "there is no tool 'fly'"),
        ("get_order", '"order_id" is a required property; write get_order(order_id)'),
        ('get_order("W1")', 'arguments.order_id: "W1" does not match'),
        ('get_order("W1', "unterminated string"),
        ("two words", "cannot be read as a call"),
        ("999", "there is no choice 999; they go from 1 to"),
        ("0", "there is no choice 0"),
        ("9" * 5_000, "there is no choice"),
        ("undo", "there is no step to take back"),
        ("\x00(", "not done"),
    ],
)
def test_a_slip_of_the_keyboard_costs_no_step(typed: str, says: str, tmp_path: Path) -> None:
    shown = played(typed, "list_products('home')", store=tmp_path)
    assert "not done: " in shown
    assert says in shown
    assert "Step 1 of" in shown
    assert recorded(tmp_path)[0]["n_turns"] == 1


def test_a_number_picks_what_the_array_interface_offers_at_that_place(tmp_path: Path) -> None:
    env: Any = gymnasium.make(TOOL, disable_env_checker=True).unwrapped
    env.reset(seed=0, options={"task_id": TASK})
    first = env.candidates
    env.step(0)
    then = env.candidates
    env.close()
    assert len(then) > len(first)
    shown = played("?", "1", "choices", str(len(then)), store=tmp_path)
    for number, call in [*enumerate(first, 1), *enumerate(then, 1)]:
        assert f"{number}  {call}"[:90] in shown
    steps = list(TrajectoryStore(tmp_path).steps(recorded(tmp_path)[0]["episode_id"]))
    assert [json.loads(step["action"]) for step in steps[1:]] == [first[0].to_dict(), then[-1].to_dict()]


def test_undo_goes_back_even_from_the_end(solution: list[str], tmp_path: Path) -> None:
    shown = played("finish", "undo", "list_products('home')", "undo", *solution, store=tmp_path)
    assert "The end: failure" in shown
    assert "nothing was called yet" in shown
    assert "The end: success" in shown
    lost, left, won = recorded(tmp_path)
    assert (lost["outcome"], left["outcome"], won["outcome"]) == ("failure", "interrupted", "success")
    assert (left["parent_episode_id"], won["parent_episode_id"]) == (lost["episode_id"], left["episode_id"])
    assert won["n_turns"] == len(solution)


def test_restart_next_and_quit(tmp_path: Path) -> None:
    tasks = f"{TASK},retail/cancel/train/4"
    shown = played("1", "restart", "next", "finish", "1", "", options=("--tasks", tasks), store=tmp_path)
    assert shown.count(f"Episode 1: {TASK}") == 2
    assert "Episode 2: retail/cancel/train/4" in shown
    assert "the episode has ended; press Enter" in shown
    assert [row["outcome"] for row in recorded(tmp_path)] == ["interrupted", "interrupted", "failure"]
    assert "Step 1 of" not in played("quit", "1")


def test_episodes_go_on_until_there_are_no_more_or_the_player_leaves() -> None:
    assert played(*["next"] * 9, options=("--episodes", "2")).count("Episode ") == 2
    assert played(*["next"] * 3, options=()).count("Episode ") == 4


def test_an_end_of_input_leaves_the_episode_interrupted(tmp_path: Path) -> None:
    shown = played("1", store=tmp_path / "store")
    assert "agent-gym episodes list --store" in shown
    (episode,) = recorded(tmp_path / "store")
    assert (episode["outcome"], episode["n_turns"]) == ("interrupted", 1)


def test_no_record_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Recorded" not in played("finish")
    assert not list(tmp_path.iterdir())


def test_tools_are_described_in_full() -> None:
    shown = played("tools")
    assert "Cancels a pending order as a whole" in shown
    assert "one of ordered_by_mistake, found_cheaper, no_longer_needed" in shown
    assert "page" in shown
    assert "may be left out" in shown


def test_a_page_is_clicked_through_and_back() -> None:
    shown = played("click('2')", "undo", env_id=WEB, options=("--episodes", "1"))
    pages = [line for line in shown.splitlines() if line.startswith("Page: ")]
    assert len(pages) == 3
    assert pages[0] == pages[2] != pages[1]
    assert '[2] link "Products"' in shown


@pytest.mark.usefixtures("needs_sandbox")
def test_code_is_written_over_several_lines(tmp_path: Path) -> None:
    (call, *_) = oracle_calls(CODE, "functions/merge_ranges")
    written = f'write_file("solution.py", """{call.arguments["content"].replace(chr(34) * 3, chr(39) * 3)}""")'
    shown = played(*written.splitlines(), "finish()", options=("--task", "functions/merge_ranges"), env_id=CODE, store=tmp_path)
    assert "Files: solution.py" in shown
    assert "The end: success" in shown
    assert recorded(tmp_path)[0]["n_turns"] == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([TOOL, "--split", "holiday"], "unknown split 'holiday'; known: synonyms, test, train, transfer, validation"),
        ([TOOL, "--task", "nope"], "unknown task id 'nope'; ids look like"),
        ([TOOL, "--set", "interface=array"], "'interface' cannot be set"),
        (["CartPole-v1"], "'CartPole-v1' has no text interface; play one of AgentBase/ToolTask-v0"),
    ],
)
def test_misuse_is_one_clear_line_and_exit_status_2(options: list[str], says: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_gym.cli", "play", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_like_the_end_of_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", pressed)
    assert "Recorded in" in played(store=tmp_path)
    assert recorded(tmp_path)[0]["outcome"] == "interrupted"


def test_a_terminal_completes_names_and_is_left_by_ctrl_d(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    playing = subprocess.Popen(
        [sys.executable, "-m", "agent_gym.cli", "play", TOOL, "--task", TASK, "--store", str(tmp_path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        for typed, until in [(b"", b"> "), (b"list_prod\t('home')\n", b"Step 1 of"), (b"", b"> "), (b"\x04", b"Recorded")]:
            os.write(ours, typed)
            read_until(ours, until)
        assert playing.wait(timeout=60) == 0
    finally:
        playing.kill()
        playing.wait()
        os.close(ours)
    (episode,) = recorded(tmp_path)
    assert (episode["outcome"], episode["n_turns"], episode["source"]) == ("interrupted", 1, "human")


def read_until(terminal: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 65_536)
