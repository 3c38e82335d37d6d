"""The spaces hold what they say, and travel through the shared memory of vector environments."""

import copy
import multiprocessing
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from gymnasium.vector import utils
from gymnasium.vector.utils import batch_space, create_shared_memory
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import ToolCall, ToolSpec
from agent_gym.core.schema_sample import sample_schema
from agent_gym.core.spaces import Json, ToolCallSpace, Unicode

# Gymnasium types these for arrays alone.
read_from_shared_memory: Any = utils.read_from_shared_memory
write_to_shared_memory: Any = utils.write_to_shared_memory

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": r"^W\d{7}$"},
        "email": {"type": "string", "pattern": r"^[^@\s]+@[a-z.-]+\.(com|example)$"},
        "reason": {"enum": ["late", "broken"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 4}, "minItems": 1, "maxItems": 3},
        "either": {"anyOf": [{"type": "null"}, {"const": 7}]},
        "flag": {"type": ["boolean", "null"]},
    },
    "required": ["order_id", "email", "reason"],
    "additionalProperties": False,
}


@given(st.lists(TEXT, min_size=2, max_size=4))
def test_text_passes_through_shared_memory_and_is_decoded_anew_at_each_copy(texts: list[str]) -> None:
    space = Unicode(200)
    memory = create_shared_memory(space, n=2, ctx=multiprocessing)
    view = read_from_shared_memory(space, memory, n=2)
    assert copy.deepcopy(view) == ("", "")
    for text in texts:
        write_to_shared_memory(space, 1, text, memory)
        assert copy.deepcopy(view) == ("", text)
        assert view[-1] == view[0:2][1] == text


@given(
    st.dictionaries(TEXT, st.lists(st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | TEXT | st.none()), max_size=3)
)
def test_json_passes_through_shared_memory(value: dict[str, Any]) -> None:
    space = Json(5_000)
    memory = create_shared_memory(space, n=1, ctx=multiprocessing)
    write_to_shared_memory(space, 0, value, memory)
    assert copy.deepcopy(read_from_shared_memory(space, memory, n=1)) == (value,)
    assert space.contains(value)


def test_what_does_not_fit_is_outside_and_is_not_written() -> None:
    space = Unicode(4)
    assert space.contains("æø")
    assert not space.contains("æøå")
    assert not space.contains(b"ab")
    assert not space.contains("\ud800")
    memory = create_shared_memory(space, n=1, ctx=multiprocessing)
    with pytest.raises(ValueError, match="6 bytes do not fit"):
        write_to_shared_memory(space, 0, "æøå", memory)
    assert not Json(50).contains([1])
    assert not Json(50).contains({"a": (1,)})
    assert not Json(50).contains({"a": float("nan")})


@pytest.mark.parametrize("space", [Unicode(100), Json(100), ToolCallSpace([ToolSpec(name="x", description="", parameters=SCHEMA)])])
def test_samples_lie_inside_and_follow_the_seed(space: Any) -> None:
    space.seed(3)
    first = [space.sample() for _ in range(50)]
    space.seed(3)
    assert first == [space.sample() for _ in range(50)]
    assert all(space.contains(sample) for sample in first)
    assert space.from_jsonable(space.to_jsonable(first)) == first
    assert copy.deepcopy(space) == space
    assert batch_space(space, 2).contains((first[0], first[1]))
    with pytest.raises(ValueError, match="takes no mask"):
        space.sample(mask=np.ones(1, np.int8))


def test_sampled_arguments_pass_the_schema() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        jsonschema_rs.validate(SCHEMA, sample_schema(SCHEMA, rng))


def test_a_call_space_holds_every_well_formed_call() -> None:
    space = ToolCallSpace([ToolSpec(name="x", description="")])
    assert space.contains(ToolCall("unknown", {"a": 1}))
    assert space.contains({"name": "x", "arguments": {}})
    assert space.contains("x()")
    assert not space.contains({"arguments": {}})
    assert not space.contains({"name": "x", "arguments": {"a": object()}})
    assert not space.contains(7)
