"""The counterpart: the customer or colleague whom an agent may ask. A question is read by its intent.

Scripted and deterministic, unless something else is asked to stand in for it.

What it knows is the task's (`Draft.answers`, by intent); what it understands is the world's (`Counterpart.intents`).
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent_gym.core import ToolSpec
from agent_gym.core.canonical import plain

__all__ = ["ASK", "Counterpart", "Intent"]

ASK = "ask"
"""The name of the tool."""
StandIn = Callable[[str, str, dict[str, Any]], str]


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
        intents: What it understands, by name. Of several that fit a question, the first that it knows an answer to counts.
        stand_in: Who reads questions in its place, a language model say: ``stand_in(goal, question, answers)``, with what it knows
            by intent, gives the name of an intent, or a text of its own. A text is told as it is and stands for no intent; an empty
            one says that there is nothing to add.
    """

    who: str
    intents: Mapping[str, Intent]
    stand_in: StandIn | None = None

    def answer(self, goal: str, question: str, answers: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any] | None]:
        """The intent of a question, and what is said to it.

        Args:
            goal: What the agent was asked to do.
            question: The question, as the agent put it.
            answers: What the counterpart knows, by intent.

        Returns:
            The intent, empty if none was understood; and the answer, None if there is nothing to say to it.

        Raises:
            TypeError: A stand-in said something that is no text.
        """
        if self.stand_in is None:
            intent = self.understand(question, answers)
            return intent, answers.get(intent)
        said = self.stand_in(goal, question, plain(answers))
        if not isinstance(said, str):
            raise TypeError(f"the {self.who}'s stand-in says the name of an intent or a text, not a {type(said).__name__}")
        if said in self.intents:
            return said, answers.get(said)
        return "", {"answer": said} if said.strip() else None

    def understand(self, question: str, known: Collection[str] = ()) -> str:
        """The intent of a question, or nothing: of several the first of those known, or else the first."""
        asked = " ".join(question.lower().replace("’", "'").split())
        fitting = [name for name, pattern in self._patterns.items() if pattern.search(asked)]
        return next((name for name in fitting if name in known), fitting[0] if fitting else "")

    @cached_property
    def tool(self) -> ToolSpec:
        """``ask``."""
        question = {"type": "string", "minLength": 1, "maxLength": 500, "examples": [intent.question for intent in self.intents.values()]}
        return ToolSpec(
            name=ASK,
            description=f"Ask the {self.who} something. Ask only what no record can tell.",
            parameters={"type": "object", "properties": {"question": question}, "required": ["question"], "additionalProperties": False},
            annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
            may_block=self.stand_in is not None,
        )

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return {name: re.compile(intent.words) for name, intent in self.intents.items()}
