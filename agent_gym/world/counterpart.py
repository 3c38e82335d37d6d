"""The counterpart: the customer or colleague whom an agent may ask. Scripted and deterministic; a question is read by its intent.

What it knows is the task's (`Draft.answers`, by intent); what it understands is the world's (`Counterpart.intents`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent_gym.core import ToolSpec

__all__ = ["ASK", "Counterpart", "Intent"]

ASK = "ask"
"""The name of the tool."""


@dataclass(frozen=True)
class Intent:
    """Something that can be asked.

    Attributes:
        question: How it is best asked; offered to policies that cannot write.
        words: A regular expression that a question with this intent contains; lower case, whole words are up to it.
    """

    question: str
    words: str


@dataclass(frozen=True)
class Counterpart:
    """Who is asked.

    Attributes:
        who: What it is called in the tool's description: ``customer``, ``colleague``.
        intents: What it understands, by name; the first that fits a question counts.
    """

    who: str
    intents: Mapping[str, Intent]

    def answer(self, question: str, answers: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any] | None]:
        """The intent of a question, and what is said to it.

        Args:
            question: The question, as the agent put it.
            answers: What the counterpart knows, by intent.

        Returns:
            The intent, empty if none was understood; and the answer, None if there is nothing to say to it.
        """
        intent = self.understand(question)
        return intent, answers.get(intent)

    def understand(self, question: str) -> str:
        """The intent of a question, or nothing."""
        asked = " ".join(question.lower().split())
        return next((name for name, pattern in self._patterns.items() if pattern.search(asked)), "")

    @cached_property
    def tool(self) -> ToolSpec:
        """``ask``."""
        question = {"type": "string", "minLength": 1, "maxLength": 500, "examples": [intent.question for intent in self.intents.values()]}
        return ToolSpec(
            name=ASK,
            description=f"Ask the {self.who} something. Ask only what no record can tell.",
            parameters={"type": "object", "properties": {"question": question}, "required": ["question"], "additionalProperties": False},
            annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
            may_block=False,
        )

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return {name: re.compile(intent.words) for name, intent in self.intents.items()}
