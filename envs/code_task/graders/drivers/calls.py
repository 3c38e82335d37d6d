"""Makes calls in a project, one after the other, and tells what came of each; what should have come is not known here."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["REFERENCE", "run", "told"]

sys.modules.pop("solution", None)  # this program's own name, which the project may have for one of its modules

REFERENCE = "$"
"""The one key of a dict that, as an argument, stands for something kept."""


def run(steps: list[dict[str, Any]], prefix: str = "") -> list[tuple[str, Any]]:
    """Does the steps of a case.

    Args:
        steps: Each has ``call``: ``module:name``, or the name of a method if it has ``on``, what it is called on; ``args`` and
            ``kwargs``; ``keep``, a name under which the result is kept for later steps and not told.
        prefix: Of the modules' names.

    Returns:
        Of each ``("value", result)``, ``("kept", None)`` or ``("raised", the exception's type)``.
    """
    kept: dict[str, Any] = {}
    outcomes: list[tuple[str, Any]] = []
    for step in steps:
        args = [_meant(value, kept) for value in step.get("args", ())]
        kwargs = {name: _meant(value, kept) for name, value in step.get("kwargs", {}).items()}
        try:
            result = _target(step, kept, prefix)(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is what came of it
            outcomes.append(("raised", type(error).__name__))
            continue
        if "keep" in step:
            kept[step["keep"]] = result
            outcomes.append(("kept", None))
        else:
            outcomes.append(("value", result))
    return outcomes


def told(outcomes: list[tuple[str, Any]]) -> str:
    """What came of a case's steps, as text; of what was kept nothing."""
    return "; ".join(f"raises {what}" if kind == "raised" else _text(what) for kind, what in outcomes if kind != "kept")


def _text(value: Any) -> str:
    """As ``repr``, which has the members of sets in an order that differs between processes."""
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) and value else repr(value)


def _target(step: dict[str, Any], kept: dict[str, Any], prefix: str) -> Any:
    if "on" in step:
        return getattr(kept[step["on"]], step["call"])
    module, _, name = step["call"].partition(":")
    return getattr(importlib.import_module(prefix + module), name)


def _meant(value: Any, kept: dict[str, Any]) -> Any:
    return kept[value[REFERENCE]] if type(value) is dict and list(value) == [REFERENCE] else value
