"""The demo's report: complete, honest, safe with hostile texts, one file, and the same bytes for the same data."""

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agent_gym.errors import ConfigurationError, MissingExtra
from agent_gym.evaluation import summarize
from agent_gym.report import DemoReport, EpisodeView, Point, StepView, write_demo_report

pytest.importorskip("matplotlib")

HOSTILE = "</pre></svg></style><script>alert('x')</script><img src=x onerror=alert(1)>\x00\u202e\ud800 $\\frac{ {{ 7*7 }} {% raw %}"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Checks that every element is closed, and collects what the page says."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).replace("\u00a0", " ").split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def evaluation(policy: str, solved: dict[str, int], *, broken: int = 0) -> dict[str, Any]:
    """What ``agent-gym eval --json`` gives, for 40 episodes a family, of which so many were solved."""
    counts = {
        "n_turns": 7,
        "n_invalid_actions": 1,
        "n_tool_calls": 6,
        "n_tool_failures": 2,
        "n_retries": 0,
        "n_faults": 0,
        "n_useless_questions": 0,
    }
    base = {"reward_total": 0.0, "retry_safety": [], "capabilities": ["look_up"], **counts}
    rows: list[dict[str, Any]] = [
        {**base, "task_type": family, "success": index < count, "outcome": "success" if index < count else "failure"}
        for family, count in solved.items()
        for index in range(40)
    ]
    rows += [{**base, "task_type": next(iter(solved)), "success": None, "outcome": "infra_error"} for _ in range(broken)]
    return {"policy": policy, "env_id": "AgentBase/ToolTask-v0", "split": "test", **summarize(rows), "seed": 0, "versions": {}}


@pytest.fixture(scope="module")
def data() -> DemoReport:
    families = ("retail/cancel", "retail/exchange", "retail/refuse")
    return DemoReport(
        seed=11,
        wall_s=402.3,
        command="agent-gym demo --seed 11",
        versions={"agent_gym": "0.1.0", "torch": "2.13.0"},
        demonstrations=317,
        with_demonstrations=(Point(0, 0.613, 0.55, 0.67), Point(2048, 0.822, 0.77, 0.861), Point(4096, 0.934, 0.9, 0.957)),
        without_demonstrations=(Point(0, 0.011), Point(4096, 0.023)),
        evaluations={
            "random": evaluation("random", dict.fromkeys(families, 0)),
            "heuristic": evaluation("heuristic", dict(zip(families, (0, 3, 5), strict=True))),
            "trained": evaluation("ppo", dict(zip(families, (39, 33, 38), strict=True)), broken=3),
            "oracle": evaluation("oracle", dict.fromkeys(families, 40)),
        },
        code_evaluations={"random": evaluation("random", {"humaneval": 0}), "oracle": evaluation("oracle", {"humaneval": 40})},
        episodes=(
            EpisodeView(
                policy="trained",
                task_id="retail/cancel/test/3",
                task_type="retail/cancel",
                goal="Cancel my order of a kettle.",
                outcome="success",
                end_reason="success",
                reward=1.0,
                steps=(
                    StepView(
                        index=1, call="get_order", arguments={"order_id": "W1"}, result={"status": "pending"}, milestones=("read_order",)
                    ),
                    StepView(index=2, call="cancel_order", arguments={"order_id": "W1"}, status="conflict", result="not now", reward=-0.1),
                    StepView(index=3, call="", given="{broken", status="invalid_arguments", result="not JSON", reward=None),
                ),
            ),
        ),
    )


@pytest.fixture(scope="module")
def page(data: DemoReport, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_demo_report(data, tmp_path_factory.mktemp("report") / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path: Path) -> Callable[[DemoReport], str]:
    def write(data: DemoReport) -> str:
        return write_demo_report(data, tmp_path / "new" / "report.html").read_text(encoding="utf-8")

    return write


def test_every_figure_is_there(data: DemoReport, page: str) -> None:
    text = Page(page).text
    said = [
        "91.7 %",
        "82.5 %",
        "97.5 %",
        "12.5 %",
        "61.3 %",
        "82.2 %",
        "93.4 %",
        "2.3 %",
        "77.0 – 86.1",
        "4,096",
        "2,048",
        "123",
        "14.3 %",
        "66.7 %",
    ]
    said += ["6 min 42 s", "317 oracle episodes", "agent-gym demo --seed 11", "torch 2.13.0", "AgentBase/ToolTask-v0"]
    said += [
        "Cancel my order of a kettle.",
        "get_order",
        'order_id="W1"',
        '{"status": "pending"}',
        "reached: read order",
        "reward −0.1",
        "conflict",
    ]
    for result in data.evaluations.values():
        for figures in (result, *result["by_task_type"].values()):
            said.append("{:.1f} – {:.1f}".format(*(100 * end for end in figures["success_ci95"])))
    assert [each for each in said if each not in text] == []


def test_the_summary_says_how_it_went(page: str) -> None:
    text = Page(page).text
    assert "The trained policy solves 92 % of held-out tasks (95 % interval 85–95 %); random solves 0 %, the heuristic 7 %" in text
    assert "its weakest family is retail/exchange with 82 %" in text
    assert "without demonstrations stands at 2 % after 4,096 steps" in text
    assert "There were 3 among the 563 episodes" in text


def test_hostile_texts_are_only_texts(data: DemoReport, written: Callable[[DemoReport], str]) -> None:
    step = StepView(
        index=1, call=HOSTILE, arguments={HOSTILE: HOSTILE * 99}, status=HOSTILE, result={HOSTILE: [HOSTILE] * 9}, milestones=(HOSTILE,)
    )
    unread = StepView(index=2, call="", given=HOSTILE, result=HOSTILE * 5000)
    episode = EpisodeView(
        policy=HOSTILE, task_id=HOSTILE, task_type=HOSTILE, goal=HOSTILE, outcome=HOSTILE, error=HOSTILE, steps=(step, unread)
    )
    hostile = replace(
        data,
        title=HOSTILE,
        env_id=HOSTILE,
        command=HOSTILE,
        versions={HOSTILE: HOSTILE},
        code_skipped=HOSTILE,
        curve_split=HOSTILE,
        evaluations={**data.evaluations, HOSTILE: evaluation("other", {HOSTILE: 3})},
        episodes=(episode,),
    )
    page = written(hostile)
    kinds = Page(page)
    assert {"script", "img", "iframe", "a", "form"}.isdisjoint(kinds.tags)
    assert not [name for name, _ in kinds.attributes if name.startswith("on")]
    assert not re.search("[\x00\u202e]", page)
    assert "<script>alert('x')</script>" in kinds.text
    assert "{{ 7*7 }}" in kinds.text
    assert "more characters are left out" in kinds.text


def test_it_is_one_file_that_asks_for_nothing(page: str) -> None:
    for reference in ("http://", "https://", "src=", "@import", "url(http", "//cdn", "<link", "<script"):
        assert reference not in page
    assert not re.search(r"#0000[01]\d", page), "a role's colour was not replaced"
    ids = Page(page).ids
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) == set(ids)
    assert len(page) < 300_000


def test_tables_and_charts_are_named(page: str) -> None:
    tags = Page(page).tags
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption") == 5
    assert not re.search(r"<th(?! scope| *ead)[ >]", page)
    assert page.count('role="img" aria-label="Success rate') == tags.count("svg") == 4


def test_equal_data_gives_equal_bytes_in_another_process(data: DemoReport, page: str, tmp_path: Path) -> None:
    here = write_demo_report(data, tmp_path / "here.html").read_bytes()
    assert here == page.encode()
    script = (
        "import pathlib, pickle, sys; from agent_gym.report import write_demo_report;"
        "write_demo_report(pickle.load(sys.stdin.buffer), pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "there.html")], input=pickle.dumps(data), check=True)
    assert (tmp_path / "there.html").read_bytes() == here
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.html", "there.html"]


def test_what_was_not_measured_is_said(data: DemoReport, written: Callable[[DemoReport], str]) -> None:
    bare = replace(data, without_demonstrations=(), code_evaluations={}, code_skipped="user namespaces are blocked.", episodes=())
    text = Page(written(bare)).text
    assert "Skipped because user namespaces are blocked." in text
    assert "The curve without demonstrations was not measured in this run." in text
    assert "step by step" not in text
    nothing = evaluation("ppo", {"retail/cancel": 0})
    nothing |= summarize([])
    assert "solves – of held-out tasks" in Page(written(replace(bare, evaluations={"trained": nothing}, with_demonstrations=()))).text


def test_the_trained_policy_must_be_there(data: DemoReport) -> None:
    with pytest.raises(ConfigurationError, match="'trained'"):
        replace(data, evaluations={"random": data.evaluations["random"]})


def test_without_matplotlib_the_extra_is_named(data: DemoReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingExtra, match=r"agent-gym\[train\]"):
        write_demo_report(data, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []
