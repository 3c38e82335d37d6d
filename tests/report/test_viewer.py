"""The viewer: what it shows and how it is used, in Chromium, of episodes that were really recorded."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_gym.browser.chromium import executable
from agent_gym.core import ToolCall
from agent_gym.report import viewer
from agent_gym.report.viewer import write_viewer
from agent_gym.trajectories import TrajectoryStore
from agent_gym.wrappers import RecordTrajectory
from tests.trajectories.counting import ENV_ID, CountingTasks

TOOL_TASK = "agent_gym:AgentBase/ToolTask-v0"
TASK = "retail/order_facts/test/61"
HOSTILE = '</script><script>document.title="hurt"</script><img src=x onerror=alert(1)>\u202egnp.exe\x00<!--{{ 7*7 }}"\'&amp;'
WIDTHS = (390, 768, 1600)
READY = "html[data-ready]:not([data-ready=''])"

Show = Callable[..., Any]


def record(path: Path, env_id: str, policy_id: str, episodes: list[tuple[str, list[Any]]], **keywords: Any) -> None:
    env = gymnasium.make(env_id, interface="text", disable_env_checker=True, **keywords)
    with RecordTrajectory(env, str(path), policy_id=policy_id) as recorded:
        for task_id, actions in episodes:
            recorded.reset(seed=0, options={"task_id": task_id})
            for number, action in enumerate(actions):
                recorded.note(logprob=-0.5 * number, thought=f"thought {number} {HOSTILE}")
                if any(recorded.step(action)[2:4]):
                    break


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TrajectoryStore:
    """Five episodes: two of one retail task, of which one goes wrong and one meets faults, and three of counting."""
    path = tmp_path_factory.mktemp("viewer")
    search = ToolCall("find_users_by_name", {"name": "Ana Ivanova"})
    wrong = [search, ToolCall("get_user", {"user_id": "U0000001"}), "{oops \u202e\ud800", ToolCall("list_products", {"category": HOSTILE})]
    record(path, TOOL_TASK, "careless", [(TASK, [*wrong, ToolCall("finish", {"answer": HOSTILE})])], faults={"rate": 0.0})
    record(
        path,
        TOOL_TASK,
        "careful",
        [(TASK, [search, search, ToolCall("get_user", {"user_id": "U0000001"}), ToolCall("refuse", {"reason": "on_hold"})])],
        faults={"rate": 1.0, "kinds": ["unavailable"]},
    )
    counted = [
        ("train/even/2", ["add(2)", "look()", "finish()"]),
        ("train/odd/3", ["crash()", "look()", "finish()"]),
        ("train/even/4", ["add(4)", "finish()"]),
    ]
    with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(path), policy_id="counter") as env:
        for task_id, actions in counted:
            env.reset(seed=0, options={"task_id": task_id})
            for action in actions:
                env.step(action)
    return TrajectoryStore(path)


@pytest.fixture(scope="module")
def ids(store: TrajectoryStore) -> list[str]:
    return [row["episode_id"] for row in store.episodes()]


@pytest.fixture(scope="module")
def page_file(store: TrajectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_viewer(store, store.episodes(), tmp_path_factory.mktemp("page") / "view.html").path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable.executable())
        yield started
        started.close()


@pytest.fixture
def show(needs_chromium: None, request: pytest.FixtureRequest, page_file: Path) -> Iterator[Show]:  # noqa: ARG001 - pytest's way to need it
    """Opens the page at a place; at the end, nothing may have been asked for, said on the console, or thrown."""
    browser = request.getfixturevalue("browser")
    trouble: list[str] = []
    with ExitStack() as stack:

        def opened(place: str = "", *, file: Path = page_file, width: int = 1024, scheme: str = "light") -> Any:
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            stack.callback(page.close)
            page.set_default_timeout(15_000)
            page.on("console", lambda message: trouble.append(message.text))
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("dialog", lambda dialog: trouble.append(dialog.message))
            page.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)
            page.goto(file.as_uri() + place)
            page.wait_for_selector(READY, state="attached")
            return page

        yield opened
    assert trouble == []


def step(page: Any) -> str:
    return str(page.locator(".place h2").inner_text())


def tasks(page: Any) -> list[str]:
    return [str(text) for text in page.locator("tbody .task b").all_inner_texts()]


def test_equal_rows_give_equal_bytes_and_nothing_is_addressed(store: TrajectoryStore, page_file: Path, tmp_path: Path) -> None:
    again = write_viewer(store, store.episodes(), tmp_path / "new" / "view.html")
    assert again.path.read_bytes() == page_file.read_bytes()
    assert (again.episodes, again.steps, again.pictures, again.bytes) == (5, 17, 0, page_file.stat().st_size)
    text = page_file.read_text(encoding="utf-8")
    assert len(re.findall(r"<script\b", text)) == len(re.findall(r"</script>", text)) == 5 + 2
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", text)
    assert "default-src 'none'" in text


def test_filters_narrow_the_list_and_their_counts_follow(show: Show) -> None:
    page = show()
    assert page.locator(".tally [role=status]").inner_text() == "5 episodes"
    page.get_by_label("Policy", exact=True).select_option("counter")
    assert tasks(page) == ["train/even/2", "train/odd/3", "train/even/4"]
    assert page.locator(".tally [role=status]").inner_text() == "3 of 5 episodes"
    assert "count/even (2)" in page.get_by_label("Family").inner_text()
    page.get_by_label("Outcome").select_option("success")
    assert tasks(page) == ["train/even/2", "train/even/4"]
    assert "count/odd" not in page.get_by_label("Family").inner_text()
    page.get_by_label("Search").fill("even/4")
    assert tasks(page) == ["train/even/4"]
    page.wait_for_url(re.compile("q="))
    page.reload()
    page.wait_for_selector(READY, state="attached")
    assert tasks(page) == ["train/even/4"]
    page.get_by_label("Search").fill("nothing of the kind")
    assert "No episode fits" in page.locator(".empty").inner_text()
    page.get_by_role("button", name="Clear filters").click()
    assert len(tasks(page)) == 5


def test_columns_sort_both_ways(show: Show) -> None:
    page = show()
    page.get_by_role("button", name="Steps").click()
    steps = [int(text) for text in page.locator("tbody td:nth-child(6)").all_inner_texts()]
    assert steps == sorted(steps)
    page.get_by_role("button", name="Steps").click()
    assert [int(text) for text in page.locator("tbody td:nth-child(6)").all_inner_texts()] == sorted(steps, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text() == "Steps ↓"


def test_an_episode_is_found_opened_stepped_through_and_left_by_keys(show: Show) -> None:
    page = show()
    page.keyboard.press("/")
    page.keyboard.type("careless")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".place")
    assert step(page) == "The end"
    assert page.locator(".checks").inner_text().count("✗") >= 1
    page.keyboard.press("f")
    assert step(page) == "Step 2"
    assert page.locator(".place .badge").inner_text() == "not found"
    page.keyboard.press("i")
    assert step(page) == "Step 3"
    assert "could not be read: {oops" in page.locator(".call").inner_text()
    page.keyboard.press("ArrowDown")
    assert step(page) == "Step 4"
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert step(page) == "Step 2"
    assert page.locator(".entry[aria-selected=true]").inner_text().startswith("2")
    assert "thought 1 </script><script>" in page.locator(".detail").inner_text()
    assert re.search(r"logprob\s+-0.5", page.locator(".detail").inner_text())
    page.wait_for_url(re.compile("at=2"))
    page.reload()
    page.wait_for_selector(".place")
    assert step(page) == "Step 2"
    page.keyboard.press("e")
    assert step(page) == "The end"
    page.keyboard.press("Escape")
    page.wait_for_selector("tbody")
    assert page.locator("tbody tr:focus .policy").inner_text() == "careless"
    page.go_back()
    page.wait_for_selector(".place")
    assert step(page) == "The end"


def test_the_observation_marks_what_changed(show: Show, ids: list[str]) -> None:
    page = show(f"#view=episode&a={ids[0]}&at=2")
    said = page.get_by_role("region", name="Observation")
    assert "get_user" in said.locator("ins").all_inner_texts()
    assert "find_users_by_name" in said.locator("del").all_inner_texts()
    assert "Goal:" not in said.inner_text()
    page.keyboard.press("o")
    assert said.inner_text().startswith("Goal: My name is Ana Ivanova")
    assert "get_user" in said.locator("ins").all_inner_texts()
    page.keyboard.press("o")
    page.get_by_role("button", name=re.compile("lines as before")).first.click()
    assert said.inner_text().startswith("Goal: My name is Ana Ivanova")


def test_every_attempt_is_shown_with_its_fault(show: Show, ids: list[str], store: TrajectoryStore) -> None:
    page = show(f"#view=episode&a={ids[1]}&at=1")
    made = [call for call in store.tool_calls(ids[1]) if call["step"] == 1]
    shown = page.locator(".attempts > li")
    assert shown.count() == len(made) > 1
    assert "injected fault: unavailable" in shown.first.inner_text()
    assert "after waiting" in shown.last.inner_text()


def test_a_violation_and_the_changes_it_made_lead_to_its_step(show: Show, tmp_path: Path) -> None:
    returned = ToolCall("return_item", {"order_id": "W0646092", "item_id": "I8014879"})
    record(tmp_path, TOOL_TASK, "returner", [("retail/refuse/test/92", [ToolCall("get_order", {"order_id": "W0646092"}), returned])])
    store = TrajectoryStore(tmp_path)
    (row,) = store.episodes()
    page = show(file=write_viewer(store, [row], tmp_path / "view.html", opened=[row["episode_id"]]).path)
    assert "a forbidden call was made" in page.locator(".checks").inner_text()
    change = page.locator(".change", has_text="I8014879").first
    assert (change.locator("del").inner_text(), change.locator("ins").inner_text()) == ("kept", "returned")
    assert page.locator(".entry", has_text="return_item").locator("[title='the state changed']").count() == 1
    change.get_by_role("button", name="step 2").click()
    page.locator(".place h2", has_text="Step 2").wait_for()
    assert "I8014879" in page.locator(".call").inner_text()
    assert page.locator(".change").count() > 1


def test_steps_are_searched(show: Show, ids: list[str]) -> None:
    page = show(f"#view=episode&a={ids[0]}")
    page.keyboard.press("/")
    page.keyboard.type("oops")
    page.locator(".jumps .note").filter(has_text="1 step").wait_for()
    assert page.locator(".entry").count() == 1
    page.locator(".entry").click()
    assert step(page) == "Step 3"


def test_two_episodes_side_by_side_mark_what_differs(show: Show) -> None:
    page = show()
    rows = page.locator("tbody tr")
    rows.nth(0).focus()
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("c")
    page.wait_for_selector(".sides")
    assert step(page) == "Step 0"  # where there are faults, waiting is offered too
    assert page.locator(".entry .sign").all_inner_texts()[:3] == ["≈", "≈", "≠"]
    assert page.locator(".sides ins").all_inner_texts() == ["wait(seconds), "]
    assert page.locator(".sides del").count() == 0
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert step(page) == "Step 2"
    left, right = page.locator(".sides > section").all()
    assert left.locator(".call del").all_inner_texts() != right.locator(".call ins").all_inner_texts()
    assert left.locator(".call").inner_text() == 'get_user(user_id="U0000001")'
    assert right.locator(".call").inner_text() == 'find_users_by_name(name="Ana Ivanova")'
    assert "get_user" in "".join(left.locator(".text del").all_inner_texts())
    assert "find_users_by_name" in "".join(right.locator(".text ins").all_inner_texts())
    page.keyboard.press("End")
    assert [badge.inner_text() for badge in page.locator(".sides .head > .badge:first-child").all()[:1]] == ["failure"]
    page.get_by_role("button", name="Swap sides").click()
    assert page.locator(".sides h3").first.inner_text().startswith("careful")
    page.go_back()
    page.go_back()
    page.wait_for_selector("tbody")


def test_hostile_text_stays_text(show: Show, ids: list[str]) -> None:
    for place in ("", f"#view=episode&a={ids[0]}&at=4", f"#view=episode&a={ids[0]}&at=end", f"#view=compare&a={ids[0]}&b={ids[1]}&at=4"):
        page = show(place)
        assert page.title().startswith(("Episodes", TASK))
        assert page.locator("img").count() == 0
        assert "\u202e" not in page.content()
    page = show(f"#view=episode&a={ids[0]}&at=4")
    assert '</script><script>document.title="hurt"</script><img src=x onerror=alert(1)>' in page.locator(".detail").inner_text()
    assert "\N{REPLACEMENT CHARACTER}gnp.exe" in page.locator(".detail").inner_text()


def test_a_place_that_is_not_there_is_the_list(show: Show, ids: list[str]) -> None:
    for place in (
        "#view=episode&a=nobody",
        "#view=compare&a=x",
        "#view=%3Cimg%3E",
        "#sort=nothing&run=no",
        f"#view=episode&a={ids[0]}&at=99",
    ):
        page = show(place)
        assert page.locator(".place, tbody, .empty").count() == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(width: int, show: Show, ids: list[str]) -> None:
    for place in ("", f"#view=episode&a={ids[0]}&at=4", f"#view=episode&a={ids[0]}&at=end", f"#view=compare&a={ids[0]}&b={ids[1]}&at=2"):
        page = show(place, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("?")
        assert page.locator("#help").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


CONTRAST = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => { for (let at = element; at; at = at.parentElement) {
    const c = channels(getComputedStyle(at).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return channels(getComputedStyle(document.documentElement).backgroundColor); };
  const found = {};
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("script, noscript, dialog, :disabled")) continue;
    const [one, two] = [channels(getComputedStyle(element).color), ground(element)].map(light).sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    if (ratio < 4.5) found[`${element.tagName}.${element.className} ${node.data.slice(0, 30)}`] = ratio;
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light_follow_the_system_and_the_switch_and_can_be_read(scheme: str, show: Show, ids: list[str]) -> None:
    other = {"light": "dark", "dark": "light"}[scheme]
    dark = "rgb(20, 24, 29)"

    def is_dark(page: Any) -> bool:
        return bool(page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == dark)

    for place in ("", f"#view=episode&a={ids[0]}&at=3", f"#view=episode&a={ids[1]}&at=end", f"#view=compare&a={ids[0]}&b={ids[1]}&at=2"):
        page = show(place, scheme=scheme)
        assert is_dark(page) == (scheme == "dark")
        assert page.evaluate(CONTRAST) == {}
        page.get_by_role("button", name=f"Switch to {other}").click()
        assert is_dark(page) == (other == "dark")
        assert page.evaluate(CONTRAST) == {}
    page.wait_for_url(re.compile("theme"))
    page.reload()
    page.wait_for_selector(READY, state="attached")
    assert is_dark(page) == (other == "dark")


def test_named_episodes_open_first(show: Show, store: TrajectoryStore, ids: list[str], tmp_path: Path) -> None:
    rows = [store.episode(one) for one in ids[:2]]
    page = show(file=write_viewer(store, rows[:1], tmp_path / "one.html", opened=ids[:1]).path)
    assert step(page) == "The end"
    page = show(file=write_viewer(store, rows, tmp_path / "two.html", opened=ids[:2]).path)
    assert page.locator(".sides > section").count() == 2
    page = show(file=write_viewer(store, [], tmp_path / "none.html").path)
    assert "There are no episodes here" in page.locator(".empty").inner_text()


def test_only_the_steps_in_sight_are_drawn(show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get = CountingTasks.get
    monkeypatch.setattr(CountingTasks, "get", lambda tasks, task_id: replace(get(tasks, task_id), max_steps=400))
    with RecordTrajectory(gymnasium.make(ENV_ID, disable_env_checker=True), str(tmp_path / "store")) as env:
        env.reset(seed=0, options={"task_id": "train/even/4"})
        for number in range(400):
            env.step(f"add({number})")
    store = TrajectoryStore(tmp_path / "store")
    (row,) = store.episodes()
    page = show("#", file=write_viewer(store, [row, row], tmp_path / "view.html").path)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".place")
    for key, at in (("Home", "Step 0"), ("End", "The end"), ("k", "Step 400"), ("k", "Step 399")):
        page.keyboard.press(key)
        assert step(page) == at
        assert page.locator(".entry").count() < 60
        assert page.locator(".entry[aria-selected=true]").is_visible()


@pytest.mark.slow
def test_pictures_are_shown_and_bounded(show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_chromium: None) -> None:  # noqa: ARG001
    record(
        tmp_path,
        "agent_gym:AgentBase/WebTask-v0",
        "looker",
        [("retail/close_account/test/12", ["noop(1)", "finish()"])],
        engine="chromium",
        observation="both",
    )
    store = TrajectoryStore(tmp_path)
    (row,) = store.episodes()
    done = write_viewer(store, [row], tmp_path / "view.html", opened=[row["episode_id"]])
    assert (done.pictures > 0, done.pictures_left_out) == (True, 0)
    page = show(f"#view=episode&a={row['episode_id']}&at=1", file=done.path)
    assert page.locator("img").evaluate("async (image) => { await image.decode(); return [image.naturalWidth, image.naturalHeight]; }") == [
        1280,
        720,
    ]
    monkeypatch.setattr(viewer, "_PICTURES_BYTES", 0)
    done = write_viewer(store, [row], tmp_path / "view.html", opened=[row["episode_id"]])
    assert (done.pictures, done.pictures_left_out > 0) == (0, True)
    page = show(f"#view=episode&a={row['episode_id']}&at=1", file=done.path)
    assert "left out of this file" in page.locator(".detail").inner_text()
