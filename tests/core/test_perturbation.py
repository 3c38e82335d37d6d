"""Perturbations as values: rewordings keep what a goal says exactly, and dialects can be read back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import Perturbation, ToolCall, ToolSpec
from agent_gym.core.dialect import Dialect
from agent_gym.core.perturbation import STRENGTHS, plain_words
from agent_gym.errors import ConfigurationError

STRONG = [strength == "strong" for strength in STRENGTHS]
TOOL = ToolSpec(
    name="move_items",
    description="Moves items.",
    parameters={
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "x-entity": "order_id"},
            "day": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"item_id": {"type": "string", "x-entity": "item_id"}}}},
        },
        "required": ["order_id", "day"],
        "additionalProperties": False,
    },
    output_schema={"type": "object", "properties": {"order_id": {"type": "string"}, "total_cents": {"type": "integer"}}},
)
CLICK = ToolSpec(name="choose", description="Chooses.", carries=True, parameters={"type": "object", "properties": {"value": {}}})
NAMES = st.from_regex(r"[a-z]{1,8}(_[a-z]{1,8}){0,3}", fullmatch=True)
DATES = st.dates().map(str) | st.datetimes().map(lambda at: at.isoformat(" ", "minutes"))
TEXTS = st.text(st.characters(categories=("Lu", "Ll", "Lo")), max_size=8) | st.sampled_from(["10115", "+49 171 2345", "W1234567", "Mo. 3"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | DATES | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
PERTURBED = st.builds(Perturbation, interface=st.just(True), strength=st.sampled_from(STRENGTHS), seed=st.integers(0, 2**40))
WORDS = "Please change “the plan, v2” for Ana D'Souza. My order is #W123.  I live in Bad Homburg, see a.b@c.example. Do it today!"


@given(PERTURBED, NAMES, NAMES)
def test_names_differ_in_every_dialect_where_they_did_before(perturbation: Perturbation, one: str, other: str) -> None:
    dialect = Dialect.drawn(perturbation, [TOOL])
    assert dialect.plain(dialect.name(one)) == one
    assert (dialect.name(one) == dialect.name(other)) == (one == other)
    assert dialect.name(f"{one}_key"[:-1] + "ys") == dialect.name(f"{one}_key"[:-1] + "y") + "s"


@given(PERTURBED, VALUES)
def test_results_can_be_read_back(perturbation: Perturbation, value: Any) -> None:
    dialect = Dialect.drawn(perturbation, [TOOL])
    told = dialect.told(value)
    assert dialect.heard(told) == value
    assert Dialect.of(dialect.conventions, [TOOL]).heard(told) == value


@given(PERTURBED)
def test_calls_are_those_that_the_shown_schema_asks_for(perturbation: Perturbation) -> None:
    dialect = Dialect.drawn(perturbation, [TOOL])
    call = ToolCall("move_items", {"order_id": "W1", "day": "2026-03-01", "lines": [{"item_id": "I1"}]})
    shown, spec = dialect.shown(call), dialect.spec(TOOL)
    assert dialect.call(shown) == call
    assert set(shown.arguments) == set(spec.parameters["properties"]) >= set(spec.parameters["required"])
    assert shown.arguments[dialect.name("day")] == "2026-03-01"
    assert list(spec.parameters["properties"]) != [dialect.name(name) for name in TOOL.parameters["properties"]]


@given(PERTURBED, st.text() | st.lists(st.sampled_from(["Order", "purchases", "orders/1", "ITEM", "Gift order", "a.item@x"])).map(" ".join))
def test_the_words_of_pages_lead_back(perturbation: Perturbation, text: str) -> None:
    dialect = Dialect.drawn(perturbation, [CLICK], ["Gift order"])
    assert dialect.page(dialect.page(text)) == text
    page = {"outline": "Gift order W1: see /order/item, Product: chair", "elements": [{"bid": "3", "role": "item", "name": "Products"}]}
    shown = dialect.page(page)
    assert shown["outline"].startswith("Gift order W1: see /order/item, ")
    assert shown["elements"][0]["role"] == "item"
    if perturbation.strong:
        assert shown["outline"].endswith("Ware: chair")
        assert shown["elements"][0]["name"] == "Wares"
        spec = dialect.spec(CLICK)
        chosen = ToolCall("choose", dict.fromkeys(spec.parameters["properties"], "Wares"))
        assert dialect.call(chosen) == ToolCall("choose", {"value": "Products"})
    assert Dialect.drawn(perturbation, [CLICK]).page(page) == page


def test_what_goes_back_into_calls_keeps_its_form() -> None:
    dialect = Dialect.drawn(Perturbation(interface=True, strength="strong"), [TOOL])
    told = dialect.told({"day": "2026-03-01", "days": ["2026-03-01"], "due": "2026-03-01", "order_id": 12345, "total_cents": 12345})
    assert list(told.values())[:2] == ["2026-03-01", ["2026-03-01"]]
    assert list(told.values())[2] in ("2026/03/01", "01.03.2026")
    assert list(told.values())[3:] == [12345, "12'345"]
    said = ToolCall("finish", {"answer": f"{told[dialect.name('due')]}, 12'345, O'Neil"})
    assert dialect.closing(said).arguments == {"answer": "2026-03-01, 12345, O'Neil"}


@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_reworded_goal_says_the_same(strength: str) -> None:
    exact = ["“the plan, v2”", "Ana D'Souza", "#W123", "Bad Homburg", "a.b@c.example"]
    spec = {"params": {"who": "Ana D'Souza", "city": "Bad Homburg"}}
    goals = {Perturbation(wording=True, strength=strength, seed=seed).reworded("t", WORDS, spec) for seed in range(20)}
    assert len(goals) > 5
    for goal in goals:
        assert goal != WORDS
        assert all(text in goal for text in exact)
        assert plain_words(goal).casefold().split() == WORDS.casefold().split()
    assert plain_words(WORDS) == WORDS
    assert Perturbation(state=True).reworded("t", WORDS, spec) == WORDS


def test_it_is_a_json_value() -> None:
    one = Perturbation(wording=True, state=True, strength="strong", seed=7)
    assert Perturbation.of(one.to_dict()) == one == Perturbation.of(one)
    assert one.to_dict() == {"wording": True, "interface": False, "state": True, "strength": "strong", "seed": 7}
    assert Perturbation.of(None) is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("wording", "must be an object"),
        ({"colour": True}, "unknown field of a perturbation 'colour'"),
        ({"wording": "yes"}, "true or false"),
        ({"strength": "brutal"}, "known: mild, strong"),
        ({"seed": 1.5}, "the seed must be an integer"),
    ],
)
def test_what_does_not_fit_is_named(value: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Perturbation.of(value)
