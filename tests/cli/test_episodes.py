"""The call log, and the options that make calls fail."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from typer.testing import CliRunner, Result

from agent_gym.cli import app, evaluate, play, train
from agent_gym.core import ToolCall
from agent_gym.errors import AgentGymError, ConfigurationError
from agent_gym.gateway.safety import RETRY_SAFETY
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID


def run(*arguments: str, store: Path | None = None) -> Result:
    options = [] if store is None else ["--store", str(store)]
    return CliRunner().invoke(app, [*arguments, *options], env={"COLUMNS": "200"})


def printed(*arguments: str, store: Path) -> str:
    done = run(*arguments, store=store)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one of two episodes, then one of one."""
    path = tmp_path_factory.mktemp("calls")
    played: list[list[tuple[str, list[Any]]]] = [
        [("train/even/2", ["add(2)", "look()", "finish()"]), ("train/odd/3", ["crash()", "add('two')", "look()"])],
        [("train/even/4", [ToolCall("add", {"amount": 4}), ToolCall("fly", {"to": "\x9b2J\N{SNOWMAN}"})])],
    ]
    for episodes in played:
        with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(path), policy_id="me") as env:
            for task_id, actions in episodes:
                env.reset(seed=0, options={"task_id": task_id})
                for action in actions:
                    env.step(action)
    return path


def calls(*arguments: str, store: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed("episodes", "calls", *arguments, "--json", store=store))["calls"]
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [(1, "add"), (2, "fly")]),
        (["--tool", "look"], []),
        (["--task", "train/even/2"], [(1, "add"), (2, "look"), (3, "finish")]),
        (["--task", "train/even/2", "--step", "2"], [(2, "look")]),
        (["--task", "train/odd/3", "--status", "error"], [(1, "crash")]),
        (["--task", "train/odd/3", "--tool", "look"], [(3, "look")]),
        (["--task", "train/odd/3", "--limit", "2"], [(2, "add"), (3, "look")]),
        (["--task", "train/even/2", "--limit", "0"], [(1, "add"), (2, "look"), (3, "finish")]),
        (["--task", "nobody's"], []),
    ],
)
def test_calls_are_filtered_and_come_from_the_newest_run_unless_something_is_named(
    options: list[str], expected: list[tuple[int, str]], store: Path
) -> None:
    assert [(call["step"], call["tool"]) for call in calls(*options, store=store)] == expected


def test_calls_of_a_run_or_an_episode(store: Path) -> None:
    first, second = (about["run_id"] for about in TrajectoryStore(store).runs())
    assert [call["tool"] for call in calls("--run", first, "--status", "empty", store=store)] == ["look", "look"]
    assert [call["tool"] for call in calls("--run", second, store=store)] == ["add", "fly"]
    episode_id = TrajectoryStore(store).episodes()[1]["episode_id"]
    assert [call["tool"] for call in calls("--episode", episode_id, store=store)] == ["crash", "add", "look"]


def test_json_is_complete(store: Path) -> None:
    (call,) = calls("--task", "train/even/2", "--step", "1", store=store)
    expected = {
        "task_id": "train/even/2",
        "env_id": "Test/Counting-v0",
        "policy_id": "me",
        "attempt": 1,
        "tool": "add",
        "arguments": {"amount": 2},
        "status": "ok",
        "result": "now 2",
        "structured": {"count": 2},
        "retry_after_s": None,
        "fault": None,
        "waited_s": 0.0,
        "from_cache": False,
    }
    assert {name: call[name] for name in expected} == expected
    assert {"key", "took_effect", "effect", "dur_us", "error", "known_tool", "args_valid", "run_id", "call_index"} <= set(call)


def test_the_terminal_shows_every_attempt_in_full_and_obeys_none(store: Path) -> None:
    shown = printed("episodes", "calls", "--task", "train/odd/3", store=store)
    assert shown.startswith("3 attempts in ")
    assert "  train/odd/3\nstep 1, attempt 1  crash()\n  error  " in shown
    assert "crash failed: RuntimeError: no such luck" in shown
    assert "Traceback" in shown
    assert 'step 2, attempt 1  add(amount="two")\n  invalid_arguments  ' in shown
    shown = printed("episodes", "calls", store=store)
    assert 'fly(to="\\x9b2J\N{SNOWMAN}")' in shown


def test_an_empty_store_has_no_calls(tmp_path: Path) -> None:
    assert printed("episodes", "calls", store=tmp_path).startswith("0 attempts in ")


def test_misuse(store: Path) -> None:
    assert "the first action is step 1" in run("episodes", "calls", "-h").stdout.replace("│", "").replace("  ", "")
    done = run("episodes", "calls", "--status", "okay", store=store)
    assert isinstance(done.exception, ConfigurationError)
    assert "unknown status 'okay'; known: conflict" in str(done.exception)
    assert run("episodes", "calls", "--step", "0", store=store).exit_code == 2


class _Asked(AgentGymError):
    """Stops a command at the point where the work would begin."""


def asked(command: str, *options: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The keywords of the environment that a command would make."""
    given: dict[str, Any] = {}

    def stop(*_: Any, **keywords: Any) -> Any:
        given.update(keywords)
        raise _Asked

    monkeypatch.setattr(gymnasium, "make", stop)
    monkeypatch.setattr(play, "run_play", lambda *_, env_kwargs, **__: stop(**env_kwargs))
    monkeypatch.setattr(train, "_config", lambda *_, env_kwargs, **__: stop(**env_kwargs))
    names = {"eval": ["oracle", ENV_ID]}.get(command, [ENV_ID])
    done = run(command, *names, *options)
    assert isinstance(done.exception, _Asked), done.output
    return {key: given[key] for key in ("faults", "retries") if key in given}


@pytest.mark.parametrize("command", ["eval", "train", "play"])
def test_faults_and_retries_are_keywords_of_the_environment(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(command, monkeypatch=monkeypatch) == {}
    assert asked(command, "--faults", "0.3", monkeypatch=monkeypatch) == {"faults": 0.3}
    assert asked(command, "--faults", "0", "--retries", "agent", monkeypatch=monkeypatch) == {"faults": 0.0, "retries": "agent"}
    assert asked(command, "--set", 'faults={"rate":1,"kinds":["outage"]}', monkeypatch=monkeypatch) == {
        "faults": {"rate": 1, "kinds": ["outage"]}
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--faults", "1.5"], "'--faults'"),
        (["--retries", "nobody"], "'gateway', 'agent'"),
    ],
)
def test_faults_are_a_share_and_retries_have_an_owner(options: list[str], says: str) -> None:
    done = run("eval", "oracle", ENV_ID, *options)
    assert done.exit_code == 2
    assert says in " ".join(done.output.replace("│", "").split())


def test_a_keyword_given_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "run_evaluation", None)
    done = run("eval", "oracle", ENV_ID, "--faults", "0.3", "--set", "faults=0.1")
    assert str(done.exception) == "--set 'faults=0.1': already given by --faults"


def test_eval_shows_how_failures_were_dealt_with_if_there_were_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["oracle", ENV_ID, "--set", 'families=["even"]', "--episodes", "2"]
    assert "retries" not in printed("eval", *options, store=tmp_path)
    result = json.loads(printed("eval", *options, "--json", store=tmp_path))
    assert list(result["retry_safety"]) == list(RETRY_SAFETY)
    assert (result["retries_mean"], result["faults_mean"]) == (0.0, 0.0)
    unwise = {"duplicate_writes": 0.5, "ignored_retry_after": None}
    figures = {**result, "by_task_type": {}, "faults_mean": 1.5, "retries_mean": 0.25, "retry_safety": unwise}
    monkeypatch.setattr(evaluate, "run_evaluation", lambda *_, **__: figures)
    lines = printed("eval", *options, store=tmp_path).splitlines()
    assert lines[-2].split() == ["all", "1.500", "0.250", "0.500", "–"]
    assert lines[-3].split() == ["task", "type", "faults", "retries", "duplicate", "writes", "ignored", "retry", "after"]


def test_a_domain_whose_tools_are_local_has_no_faults(tmp_path: Path) -> None:
    result = json.loads(
        printed("eval", "oracle", ENV_ID, "--faults", "1", "--retries", "agent", "--tasks", "even", "--json", store=tmp_path)
    )
    assert (result["success_rate"], result["faults_mean"]) == (1.0, 0.0)


def test_query_finds_episodes_by_a_condition(store: Path) -> None:
    found = json.loads(printed("episodes", "query", "n_tool_failures > 0", "--format", "json", store=store))
    assert [row["task_id"] for row in found["episodes"]] == ["train/odd/3", "train/even/4"]
    assert [row["n_tool_failures"] for row in found["episodes"]] == [2, 1]
    assert (
        json.loads(printed("episodes", "query", "n_turns > 50 and task_type = 'retail/exchange'", "--json", store=store))["episodes"] == []
    )
    shown = printed("episodes", "query", "n_turns >= 3", store=store)
    assert shown.startswith("2 episodes in ")
    assert "train/odd/3" in shown
    assert "n_tool_failures" in shown
    assert printed("episodes", "query", "true", "--limit", "1", store=store).startswith("1 episodes in ")
    newest = TrajectoryStore(store).runs()[-1]["run_id"]
    assert len(json.loads(printed("episodes", "query", "true", "--run", newest, "--json", store=store))["episodes"]) == 1


def test_query_answers_sql_in_every_format(store: Path) -> None:
    sql = "SELECT task_id, count(*) AS calls, list(tool) AS tools FROM tool_calls JOIN episodes USING (episode_id) GROUP BY 1 ORDER BY 1"
    found = json.loads(printed("episodes", "query", "--sql", sql, "--json", store=store))["rows"]
    assert found[0] == {"task_id": "train/even/2", "calls": 3, "tools": ["add", "look", "finish"]}
    assert printed("episodes", "query", "--sql", sql, "--format", "csv", store=store).splitlines()[:2] == [
        "task_id,calls,tools",
        'train/even/2,3,"[""add"",""look"",""finish""]"',
    ]
    assert "3 rows" in printed("episodes", "query", "--sql", sql, store=store)
    assert printed("episodes", "query", "--sql", "SELECT 1 AS one WHERE false", "--format", "csv", store=store) == ""
    assert printed("episodes", "query", "--sql", "SELECT NULL AS nothing", "--format", "csv", store=store) == 'nothing\n""\n'


def test_query_says_what_is_wrong(store: Path) -> None:
    for arguments in (["n_tool_failure > 3"], ["n_turns >"], ["--sql", "SELECT nothing FROM nowhere"]):
        done = run("episodes", "query", *arguments, store=store)
        assert isinstance(done.exception, ConfigurationError)
        assert str(done.exception).startswith("the query cannot be answered: ")
    assert run("episodes", "query", "--sql", "SELECT 1", "--limit", "3", store=store).exit_code == 2


def test_show_tells_an_episode(store: Path) -> None:
    first, second, third = (row["episode_id"] for row in TrajectoryStore(store).episodes())
    shown = printed("episodes", "show", first, store=store)
    assert shown.startswith(f"{first}\ntrain/even/2  count/even\nenv_id Test/Counting-v0  env_version 7  policy_id me")
    assert "\n  Count to 2.\n" in shown
    assert "\nstep 1  add(amount=2)\n  ok  reached begun\n" in shown
    assert "\nstep 3  finish()\n  ok  reward +1\n" in shown
    assert "\nsuccess  success  reward 1  3 steps\n  passed  counted  count 2\n  changed count count: 0 → 2\n" in shown
    assert printed("episodes", "show", store=store).startswith(f"{third}\n"), "without an id the newest"
    shown = printed("episodes", "show", second, store=store)
    assert "\nstep 1  crash()\n  error\n" in shown
    assert '\nstep 2  add(amount="two")\n  invalid_arguments\n' in shown
    assert "\ninterrupted  " in shown


def test_show_tells_a_step_whole(store: Path) -> None:
    first = TrajectoryStore(store).episodes()[0]["episode_id"]
    shown = printed("episodes", "show", first, "--step", "1", store=store)
    assert '\naction {"name":"add","arguments":{"amount":2}}\n' in shown
    assert "\nobservation\n  Goal: Count to 2.\n" in shown
    assert "step 1, attempt 1  add(amount=2)" in shown
    assert "rng_digest " in shown
    assert "\nstep 0  reset" in printed("episodes", "show", first, "--step", "0", store=store)
    found = json.loads(printed("episodes", "show", first, "--step", "1", "--json", store=store))
    assert found["episode"]["changes"] == [{"where": "count", "key": "count", "before": 0, "after": 2}]
    assert [step["obs_data"]["view"] for step in found["steps"]] == [{"count": 2}]
    assert [call["arguments"] for call in found["tool_calls"]] == [{"amount": 2}]
    assert found["events"] == []
    for arguments, says in ((["nothing"], "no episode 'nothing'"), ([first, "--step", "9"], "has no step 9; it has 3 after the reset")):
        done = run("episodes", "show", *arguments, store=store)
        assert says in str(done.exception)


def test_show_obeys_nothing_that_it_shows(store: Path) -> None:
    third = TrajectoryStore(store).episodes()[-1]["episode_id"]
    assert "\x9b" not in printed("episodes", "show", third, store=store)
    assert "\x9b" not in printed("episodes", "show", third, "--step", "2", store=store)


def test_show_of_an_empty_store(tmp_path: Path) -> None:
    assert "no episodes in" in str(run("episodes", "show", store=tmp_path).exception)
