"""Questions, judged by the answer that the agent finishes with."""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from agent_gym.envs.code_task.graders.grade import Grade, Work
from agent_gym.sandbox import Limits, SandboxPool

__all__ = ["judge"]

_NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?", re.ASCII)


def judge(work: Work, hidden: Mapping[str, Any], limits: Limits, pool: SandboxPool) -> Grade:  # noqa: ARG001 - nothing is run
    """By the answer: ``hidden`` has ``answer``, and ``kind``: ``number`` (by its value), ``text`` (but
    for white space around it and how its characters are composed), or ``list`` (texts between commas, in this order).
    """
    if work.answer is None:
        return Grade(passed=False, detail="there is no answer")
    got, wanted = _parts(work.answer, hidden["kind"]), _parts(hidden["answer"], hidden["kind"])
    passed = got == wanted and got is not None
    return Grade(passed=passed, detail="" if passed else f"got {work.answer[:200]!r}, expected {hidden['answer']!r}")


def _parts(answer: str, kind: str) -> list[str] | list[Decimal] | None:
    """What is compared; None for what is no answer of the kind."""
    text = unicodedata.normalize("NFC", answer).strip()
    if kind == "number":
        return [Decimal(text)] if _NUMBER.fullmatch(text) else None
    return [part.strip() for part in text.split(",")] if kind == "list" else [text]
