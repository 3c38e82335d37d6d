"""Operations as a site calls them: what is typed into the fields of a form, and what it means."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jsonschema_rs

from agent_gym.core import ToolSpec
from agent_gym.world.site.values import Schema, part, types_of

__all__ = ["Act", "Arguments", "entity_of", "is_free", "typed"]

Arguments = dict[str, Any]

_DOLLARS = re.compile(r"(-?)\$?([0-9]{1,12})(?:\.([0-9]{1,2}))?")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
_UNSAID = {"page": 1}
"""What a parameter means that is left out, where its schema does not say it."""


@dataclass(frozen=True)
class Act:
    """An operation as the site calls it.

    Attributes:
        spec: What is known of it.
        title: What its form and its button say.
    """

    spec: ToolSpec
    title: str

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The parameters that must be given."""
        return tuple(self.spec.parameters.get("required", ()))

    @cached_property
    def fields(self) -> dict[str, Schema]:
        """The schemas of its parameters, those that are required first."""
        fields: Mapping[str, Schema] = self.spec.parameters.get("properties", {})
        return {**{name: fields[name] for name in self.required if name in fields}, **fields}

    @cached_property
    def result(self) -> Mapping[str, Schema]:
        """The schemas of its result's fields."""
        return part(self.spec.output_schema or {}, "properties")

    @cached_property
    def entities(self) -> dict[str, str]:
        """By parameter that names one thing, the kind of thing."""
        return {name: kind for name, schema in self.fields.items() if (kind := entity_of(schema)) and "array" not in types_of(schema)}

    @cached_property
    def maybe_empty(self) -> frozenset[str]:
        """The parameters that take an empty text."""
        return frozenset(name for name, schema in self.fields.items() if jsonschema_rs.is_valid(dict(schema), ""))

    @cached_property
    def validator(self) -> Any:
        """Says what is wrong with arguments."""
        return jsonschema_rs.validator_for(dict(self.spec.parameters))

    @cached_property
    def result_validator(self) -> Any:
        """Says what is wrong with a result."""
        return jsonschema_rs.validator_for(dict(self.spec.output_schema or {"type": "object"}))

    def meant(self, arguments: Mapping[str, Any]) -> Arguments:
        """Arguments without those that say no more than leaving them out does: null, an unticked box, a default, the first page."""
        return {
            name: value
            for name, value in arguments.items()
            if name in self.required
            or not (value is None or value is False or value == self.fields.get(name, {}).get("default", _UNSAID.get(name)))
        }

    def meaning(self, texts: Mapping[str, str], label: Callable[[str], str]) -> Arguments:
        """The arguments that a form's fields mean. Empty ones of parameters that may be left out are left out.

        Args:
            texts: What the fields hold.
            label: What fields are called.

        Raises:
            ValueError: They do not fit; the message is for people.
        """
        arguments: Arguments = {}
        for name, schema in self.fields.items():
            text = texts.get(name, "").replace("\r\n", "\n")
            if text.strip():
                arguments[name] = _value(text, schema, name, label)
            elif name in self.required and "boolean" in types_of(schema):
                arguments[name] = False
            elif name in self.required and name in texts and name in self.maybe_empty:
                arguments[name] = ""
        if lacking := [label(name) for name in self.required if name not in arguments]:
            raise ValueError(f"Missing: {', '.join(lacking)}.")
        for error in self.validator.iter_errors(arguments):
            where = label(str(error.instance_path[0])) if error.instance_path else self.title
            raise ValueError(f"{where}: {error.message}")
        return arguments


def entity_of(schema: Schema) -> str:
    """The kind of thing that a parameter, or each item of it, names; empty where it names none."""
    return str(schema.get("x-entity") or part(schema, "items").get("x-entity") or "")


def is_free(schema: Schema) -> bool:
    """Whether a parameter takes any text."""
    return "string" in types_of(schema) and schema.keys().isdisjoint(("enum", "pattern", "format", "x-entity"))


def typed(value: Any, name: str) -> str:
    """A value as it is typed into a field of that name."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int) and name.endswith("_cents"):
        return f"{'-' * (value < 0)}{abs(value) // 100}.{abs(value) % 100:02d}"
    return str(value)


def _value(text: str, schema: Schema, name: str, label: Callable[[str], str]) -> Any:
    kinds = types_of(schema)
    if "array" in kinds:
        return [item.strip() for item in text.replace("\n", ",").split(",") if item.strip()]
    if "boolean" in kinds:
        return text == "yes"
    if "string" in kinds:
        return text if is_free(schema) else text.strip()
    text = text.strip()
    if name.endswith("_cents") and (money := _DOLLARS.fullmatch(text)):
        return (-1 if money[1] else 1) * (100 * int(money[2]) + int((money[3] or "").ljust(2, "0")))
    if not _NUMBER.fullmatch(text) or ("." in text and "number" not in kinds):
        raise ValueError(f"{label(name)}: {text!r} is no number that fits.")
    return float(text) if "." in text else int(text)
