"""The gameability card in the docs says what is so: it has every family of every version, and parts of it, played again, are equal."""

import re
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

import agent_gym  # noqa: F401 - registers the ids
from agent_gym.envs.worlds import load_worlds
from agent_gym.evaluation.admission import BOUNDS, admit
from agent_gym.evaluation.card import card_heading, card_line, gameability_card
from agent_gym.registry import IDS, OUTSIDE

CARD = (Path(__file__).parents[2] / "docs" / "gameability.md").read_text(encoding="utf-8")
COMMAND = re.search(r"agent-gym check tasks --all --seeds (\d+) --episodes (\d+) --card docs/gameability.md", CARD)
RENEW = "the card is out of date; make it anew: agent-gym check tasks --all --card docs/gameability.md"


def families_there_are() -> Iterator[tuple[str, str]]:
    for env_id in (each for each in IDS if each not in OUTSIDE):
        env = gymnasium.make(env_id, interface="text")
        tasks, version = env.get_wrapper_attr("tasks"), env.unwrapped.rich.unwrapped.version  # type: ignore[attr-defined]
        for split in ("train", "transfer"):
            for family in tasks.families(split) if split in tasks.splits() else ():
                if tasks.get(tasks.ids(split, family)[0]).oracle_kind != "none":
                    yield f"## {env_id}, version {version}, split {split}", family
        env.close()


def families_on_the_card() -> Iterator[tuple[str, str]]:
    heading = ""
    for line in CARD.splitlines():
        heading = line if line.startswith("## ") else heading
        if heading and (family := re.match(r"\| (\w+/\w+) \|", line)):
            yield heading, family[1]


def test_every_family_of_the_present_version_is_on_the_card() -> None:
    assert list(families_on_the_card()) == list(families_there_are()), RENEW


def test_every_policy_has_its_bounds_and_its_column() -> None:
    assert all(f"| `{name}` |" in CARD for name in BOUNDS)
    assert f"| family | {' | '.join(BOUNDS)} | ways | steps | difficulty |" in CARD


SAMPLE = [(f"{kind.name}/{family.name}", family.transfer) for kind in load_worlds(None) for family in list(kind.families.values())[::6]]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "transfer"), SAMPLE)
def test_a_family_played_again_has_the_same_line(family: str, transfer: bool) -> None:
    assert COMMAND is not None
    seeds, episodes = map(int, COMMAND.groups())
    split = "transfer" if transfer else "train"
    (row,) = admit("AgentBase/ToolTask-v0", split=split, seeds=seeds, episodes=episodes, env_kwargs={"families": [family]})
    assert f"{card_heading(row)}\n" in CARD, RENEW
    assert f"{card_line(row)}\n" in CARD, RENEW
    assert card_line(row) in gameability_card([row], seeds=seeds, episodes=episodes)
