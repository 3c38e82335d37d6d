"""Pages read as records: what they define, and the rows of their tables."""

import gymnasium
import pytest

pytest.importorskip("torch")

import agent_gym  # noqa: F401 - registers the ids
from agent_gym.baselines.candidate_ppo.features import RaggedEncoder
from agent_gym.baselines.candidate_ppo.pages import read
from agent_gym.interface.candidates import Toolbox


def test_a_page_is_read_as_records() -> None:
    page = read(
        "\n".join(
            [
                "# Order W1",
                "! The order is final sale.",
                'navigation "Shop": [1] link "Home"',
                'Customer: [2] link "U7" (visited)',
                "Total: $12.50",
                "| Item | Quantity | Change |",
                '| [3] link "sun \\"hat\\"" | 2 | [4] spinbutton "Quantity" = "2" [5] button "Set" |',
                "| a \\| b | 3 | none |",
                'Reason: [6] combobox "Reason" = "choose" options: "choose"',
            ]
        )
    )
    assert page.fields == {"Customer": "U7", "Total": 12.5}
    assert [row.fields for row in page.rows] == [
        {"Item": 'sun \\"hat\\"', "Quantity": 2},
        {"Item": "a | b", "Quantity": 3, "Change": "none"},
    ]
    assert [row.elements for row in page.rows] == [{"3", "4", "5"}, set()]
    assert len({row.kind for row in page.rows}) == 1
    assert {"#:order", "!:final", "!:sale"} <= set(page.told)


def test_the_pages_of_an_episode_say_what_its_database_holds() -> None:
    env = gymnasium.make("AgentBase/WebTask-v0", interface="text", families=["retail/order_facts"], disable_env_checker=True)
    env.reset(seed=0)
    inner = env.unwrapped
    rich = [inner.observation.to_dict()]  # type: ignore[attr-defined]
    done = False
    defined: dict[str, object] = {}
    while not done:
        defined |= read(rich[-1]["data"]["view"]["outline"]).fields
        _, _, terminated, truncated, _ = env.step(call := inner.oracle(rich))  # type: ignore[attr-defined]
        rich.append(inner.observation.to_dict())  # type: ignore[attr-defined]
        done = terminated or truncated
    assert call.name == "finish"
    assert call.arguments["answer"] in map(str, defined.values())


def test_links_that_are_no_addresses_and_odd_arguments_are_read_too() -> None:
    env = gymnasium.make("AgentBase/WebTask-v0", interface="text", disable_env_checker=True)
    env.reset(seed=0)
    inner = env.unwrapped
    data = inner.observation.to_dict()["data"]  # type: ignore[attr-defined]
    elements = [{**element, "url": "http://[x"} for element in data["view"]["elements"]]
    last = {"tool": "click", "arguments": {"bid": ["1"]}, "status": "conflict", "result": ""}
    toolbox = Toolbox(inner.tools)  # type: ignore[attr-defined]
    hostile = {**data, "last": last, "view": {**data["view"], "elements": elements}}
    encoded = RaggedEncoder(data["goal"], toolbox).encode(hostile)
    assert len(encoded["rows"]) > len(elements)
