"""The benchmark: nothing answered is run twice, what breaks off goes on, and the table says what it has and what it lacks."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from agent_gym.errors import ConfigurationError
from agent_gym.evaluation import bootstrap_clustered
from agent_gym.report.benchmark import SUITES, Event, FolderBusy, Part, Suite, collect, plan, work

pytest.importorskip("sb3_contrib")
pytest.importorskip("matplotlib")

TOOL = "AgentBase/ToolTask-v0"
PLACE = Path("answers/ToolTask-v0")
PART = Part(
    env_id=TOOL,
    settings={"worlds": ["retail"], "families": ["cancel", "refuse"]},
    episodes=10,
    steps=32,
    bc=4,
    dagger=2,
    training={"n_envs": 2, "n_steps": 16, "batch_size": 32, "eval_episodes": 2},
    cloning={"bc_epochs": 1},
)
SUITE = Suite(name="tiny", seeds=2, policies=("random", "bc", "oracle"), splits=("test",), parts=(PART,))


def run(suite: Suite, folder: Path, *, jobs: int = 2) -> list[Event]:
    events: list[Event] = []
    work(plan(suite), folder, jobs=jobs, say=events.append)
    return events


def record(folder: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / PLACE / f"{name}.json").read_text(encoding="utf-8"))
    return read


def curve(training: Path) -> list[dict[str, Any]]:
    try:
        points: list[dict[str, Any]] = json.loads((training / "learning_curve.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return points


def page(suite: Suite, folder: Path, out: Path) -> str:
    from agent_gym.report.benchmark.page import write_page

    return write_page(collect(plan(suite), folder), out).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the whole suite was run."""
    folder = tmp_path_factory.mktemp("benchmark")
    events = run(SUITE, folder)
    assert [event.done for event in events if event.ended] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {event.total for event in events} == {8}
    assert max(len(event.running) for event in events) == 2
    assert events[-1].running == ()
    return folder


@pytest.mark.slow
def test_rows_pool_the_seeds_and_cluster_by_task(done: Path) -> None:
    result = collect(plan(SUITE), done)
    assert (result["suite"], result["seeds"], result["jobs"], result["missing"], result["left_out"]) == ("tiny", 2, [2], [], [])
    assert [(row["env_id"], row["policy"], row["split"]) for row in result["rows"]] == [
        (TOOL, "random", "test"),
        (TOOL, "bc", "test"),
        (TOOL, "oracle", "test"),
    ]
    for row in result["rows"]:
        answers = [record(done, f"{row['policy']}-seed{seed}/test")["answer"] for seed in (0, 1)]
        assert row["seeds"] == [0, 1]
        assert row["success_by_seed"] == [answer["success_rate"] for answer in answers]
        assert row["episodes"] == 20
        pooled: dict[str, list[int]] = {}
        for answer in answers:
            for tasks in answer["by_task"].values():
                for task, (successes, trials) in tasks.items():
                    before = pooled.get(task, [0, 0])
                    pooled[task] = [before[0] + successes, before[1] + trials]
        assert row["tasks"] == len(pooled)
        assert row["success_rate"] == sum(successes for successes, _ in pooled.values()) / 20
        assert row["turns_mean"] == pytest.approx(sum(answer["turns_mean"] for answer in answers) / 2)
        assert row["success_ci95"][0] <= row["success_rate"] <= row["success_ci95"][1]
        if 0 < row["success_rate"] < 1:
            assert row["success_ci95"] == list(bootstrap_clustered([(successes, trials) for successes, trials in pooled.values()]))
    by_policy = {row["policy"]: row for row in result["rows"]}
    assert by_policy["oracle"]["success_rate"] == 1.0
    assert 0.5 < by_policy["oracle"]["success_ci95"][0] < 1.0
    assert (by_policy["bc"]["env_steps"], by_policy["bc"]["demonstrations"]) == (0, 4)
    assert (by_policy["random"]["env_steps"], by_policy["random"]["train_wall_s"]) == (None, None)
    assert all(by_policy["bc"][key] > 0 for key in ("train_wall_s", "train_cpu_s", "eval_wall_s", "eval_cpu_s"))
    assert [line.split()[1] for line in by_policy["bc"]["commands"]] == ["train", "eval"] * 2
    assert list(result["curves"][TOOL]) == ["bc"]
    assert [[step for step, _ in points] for points in result["curves"][TOOL]["bc"].values()] == [[0], [0]]


@pytest.mark.slow
def test_all_policies_of_a_seed_meet_the_same_tasks(done: Path) -> None:
    for seed in (0, 1):
        met = [
            {task for tasks in record(done, f"{policy}-seed{seed}/test")["answer"]["by_task"].values() for task in tasks}
            for policy in SUITE.policies
        ]
        assert met[0] == met[1] == met[2]


@pytest.mark.slow
def test_a_second_run_runs_nothing(done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (done / "answers").rglob("*.json")}
    events = run(SUITE, done)
    assert len(before) == 8
    assert {path: path.stat().st_mtime_ns for path in (done / "answers").rglob("*.json")} == before
    assert events == [Event(8, 8, ())]


@pytest.mark.slow
def test_the_order_of_work_changes_no_row(done: Path, tmp_path: Path) -> None:
    suite = replace(SUITE, policies=("random", "oracle"))
    planned = plan(suite)
    work(replace(planned, chains=planned.chains[::-1]), tmp_path, jobs=1)

    def rows(folder: Path) -> list[dict[str, Any]]:
        timed = ("eval_wall_s", "eval_cpu_s", "commands")
        return [{key: value for key, value in row.items() if key not in timed} for row in collect(planned, folder)["rows"]]

    assert rows(tmp_path) == rows(done)


@pytest.mark.slow
def test_the_page_has_everything(done: Path, tmp_path: Path) -> None:
    text = page(SUITE, done, tmp_path)
    read = json.loads((tmp_path / "benchmark.json").read_text(encoding="utf-8"))
    assert read == collect(plan(SUITE), done)
    for policy in SUITE.policies:
        assert f"| `{policy}` |" in text
    assert "## Missing" not in text
    assert "2 commands side by side" in text
    for line in (line for row in read["rows"] for line in row["commands"]):
        assert text.count(line) == 1
    assert {path.name for path in tmp_path.glob("*.svg")} == {"benchmark-tooltask.svg", "benchmark-tooltask-narrow.svg"}
    for picture in tmp_path.glob("*.svg"):
        assert picture.name in text
        drawn = ElementTree.parse(picture)
        texts = {"".join(node.itertext()) for node in drawn.iter("{http://www.w3.org/2000/svg}text")}
        assert {"bc", "random", "oracle", "environment steps"} <= texts


@pytest.mark.slow
def test_a_training_that_was_broken_off_goes_on(tmp_path: Path) -> None:
    part = replace(PART, steps=512, training={**PART.training, "eval_every": 64, "checkpoint_every": 64})
    suite = replace(SUITE, policies=("bc-candidate-ppo",), seeds=1, parts=(part,))
    script = (
        "import sys, pathlib\n"
        "from agent_gym.report.benchmark import Part, Suite, plan, work\n"
        f"work(plan({suite!r}), pathlib.Path(sys.argv[1]), jobs=2)\n"
    )
    log = tmp_path / "log"
    with log.open("wb") as errors, subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=errors) as process:
        deadline = time.monotonic() + 120
        training = tmp_path / "train/ToolTask-v0/bc-candidate-ppo-seed0"
        while len(before := curve(training)) < 3 or not (training / "checkpoint.zip").exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(FolderBusy, match="under way"):
            run(suite, tmp_path)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    broken = record(tmp_path, "bc-candidate-ppo-seed0/train")
    assert (broken["status"], broken["attempts"]) == ("begun", 1)
    missing = collect(plan(suite), tmp_path)["missing"]
    assert [(left["step"], left["why"]) for left in missing] == [("train", "broken off"), ("test", "its training is not done")]
    run(suite, tmp_path)  # nobody is left who works there
    trained = record(tmp_path, "bc-candidate-ppo-seed0/train")
    assert (trained["status"], trained["attempts"]) == ("done", 2)
    assert trained["answer"]["curve"][:2] == before[:2]  # seconds included: these were not measured anew
    (row,) = collect(plan(suite), tmp_path)["rows"]
    assert (row["policy"], row["resumed"]) == ("bc-candidate-ppo", 1)


@pytest.mark.slow
def test_a_command_that_fails_stops_no_other(tmp_path: Path) -> None:
    part = replace(PART, training={**PART.training, "batch_size": 7})
    suite = replace(SUITE, policies=("bc", "random"), seeds=1, parts=(part,))
    events = run(suite, tmp_path)
    assert events[-1].done == events[-1].total == 3
    result = collect(plan(suite), tmp_path)
    assert [row["policy"] for row in result["rows"]] == ["random"]
    failed, unmeasured = result["missing"]
    assert (failed["policy"], failed["seed"], failed["step"]) == ("bc", 0, "train")
    assert "exit status 2" in failed["why"]
    assert "batch_size 7 does not divide" in failed["why"]
    assert (unmeasured["step"], unmeasured["why"]) == ("test", "its training is not done")
    text = page(suite, tmp_path, tmp_path)
    assert f"- {TOOL}, `bc`, seed 0 training:" in text
    assert "batch_size 7 does not divide" in text


@pytest.mark.slow
def test_another_command_line_is_another_question(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    more = replace(SUITE, parts=(replace(PART, episodes=11),))
    result = collect(plan(more), tmp_path)
    assert result["rows"] == []
    assert {left["step"] for left in result["missing"]} == {"test"}  # the trainings are what they were
    assert len(result["missing"]) == 6
    longer = replace(SUITE, parts=(replace(PART, bc=5),))
    assert [row["policy"] for row in collect(plan(longer), tmp_path)["rows"]] == ["random", "oracle"]


@pytest.mark.slow
def test_another_model_is_measured_anew(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    (tmp_path / PLACE / "bc-seed0/train.json").write_text("{", encoding="utf-8")  # half a record is none
    suite = replace(SUITE, policies=("bc",), seeds=1)
    assert [(left["step"], left["why"]) for left in collect(plan(suite), tmp_path)["missing"]] == [
        ("train", "not run yet"),
        ("test", "its training is not done"),
    ]

    def interrupt(event: Event) -> None:
        if "train: done" in event.ended:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(plan(suite), tmp_path, jobs=1, say=interrupt)
    assert [(left["step"], left["why"]) for left in collect(plan(suite), tmp_path)["missing"]] == [("test", "not run yet")]


@pytest.mark.slow
def test_episodes_lost_to_infrastructure_are_told(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    answered = record(tmp_path, "random-seed0/test")
    answered["answer"]["infra_errors"] = 2
    (tmp_path / PLACE / "random-seed0/test.json").write_text(json.dumps(answered), encoding="utf-8")
    assert "in no rate, are episodes: 2 of `random` on `test`" in page(SUITE, tmp_path, tmp_path)


@pytest.mark.slow
def test_a_part_of_the_work_leaves_the_table_whole(tmp_path: Path) -> None:
    whole = plan(SUITE)
    part = whole.only([TOOL], ["oracle"], 1)
    assert [(chain.policy, chain.seed) for chain in part.chains] == [("oracle", 0)]
    work(part, tmp_path, jobs=1)
    assert collect(part, tmp_path)["missing"] == []
    assert {(left["policy"], left["seed"]) for left in collect(whole, tmp_path)["missing"]} == {
        ("random", 0),
        ("random", 1),
        ("bc", 0),
        ("bc", 1),
        ("oracle", 1),
    }


@pytest.mark.slow
def test_families_are_judged_beside_chance_and_the_heuristic(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    suite = replace(SUITE, policies=("random", "heuristic", "bc", "oracle"))
    planned = plan(suite)
    for chain in planned.chains:
        if chain.policy in ("heuristic", "bc"):  # as if the one did as well as the oracle on one family, and the other on both
            answer = record(done, f"oracle-seed{chain.seed}/test")
            solved = {"heuristic": ("retail/refuse",), "bc": ("retail/cancel", "retail/refuse")}[chain.policy]
            tasks = answer["answer"]["by_task"]
            answer["answer"]["by_task"] = {
                name: counts if name in solved else {task: [0, trials] for task, (_, trials) in counts.items()}
                for name, counts in tasks.items()
            }
            file = tmp_path / "answers" / chain.place / "test.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({**answer, "key": chain.key(len(chain.commands) - 1)}), encoding="utf-8")
    found = collect(planned, tmp_path)["families"][TOOL]
    assert found["policy"] == "bc"
    rows = {row["task_type"]: row for row in found["rows"]}
    assert {name: row["heuristic_solves"] for name, row in rows.items()} == {"retail/cancel": False, "retail/refuse": True}
    assert all(row["learned_by"] == ["bc"] and row["difference"] == 1.0 and 0 < row["difference_ci95"][0] < 1 for row in rows.values())
    text = page(suite, tmp_path, tmp_path)
    assert "That is so in 2 of 2 families" in text
    assert "**The heuristic solves** `retail/refuse`" in text


def test_an_empty_folder_has_a_table_of_what_is_missing(tmp_path: Path) -> None:
    text = page(SUITE, tmp_path, tmp_path)
    for policy in SUITE.policies:
        assert f"- {TOOL}, `{policy}`, seed 0" in text
    assert "seed 1 test: not run yet" in text


def test_what_makes_no_sense_is_left_out_and_said() -> None:
    part = replace(PART, env_id="AgentBase/CodeTask-v0", settings={"families": ["code/functions"]})
    planned = plan(replace(SUITE, policies=("random", "bc", "dagger", "oracle"), splits=("test", "transfer"), parts=(part,)))
    assert {left.policy for left in planned.left_out} == {"bc", "dagger"}
    assert all("nothing to clone" in left.why for left in planned.left_out)
    assert {command.step for chain in planned.chains for command in chain.commands} == {"test"}  # it has no split transfer


def test_pages_without_an_oracle_are_not_demonstrated(needs_miniwob: None) -> None:  # noqa: ARG001
    part = replace(PART, env_id="AgentBase/MiniWoB-v0", settings={"task": ["click-test", "circle-center"]})
    planned = plan(replace(SUITE, policies=("bc", "candidate-ppo-milestones", "oracle"), seeds=1, parts=(part,)))
    assert {left.policy: left.why for left in planned.left_out} == {
        "oracle": "circle-center has no oracle",
        "candidate-ppo-milestones": "its tasks have no milestones",
    }
    training = planned.chains[0].commands[0].line(Path("f"))
    assert """--set 'families=["click-test"]'""" in training
    assert "circle-center" in planned.notes[part.env_id][0]


def test_every_suite_has_every_environment_and_kind_of_policy() -> None:
    from agent_gym.registry import IDS

    asked = {"random", "heuristic", "bc", "dagger", "maskable-ppo", "async-maskable-ppo", "candidate-ppo", "bc-candidate-ppo", "oracle"}
    for suite in SUITES.values():
        assert [part.env_id for part in suite.parts] == list(IDS)
        assert asked <= set(suite.policies)
        assert suite.seeds >= 3
        assert all(part.steps >= 3 * part.training["eval_every"] for part in suite.parts)  # four points or more


def test_bad_suites_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="seeds must be at least 1"):
        replace(SUITE, seeds=0)
    with pytest.raises(ConfigurationError, match="policy 'nobody'"):
        plan(replace(SUITE, policies=("nobody",)))
