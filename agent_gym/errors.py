"""The error tree: everything that this package raises on purpose.

::

    AgentGymError
    ├── ConfigurationError (ValueError)   a keyword, id, split, task or policy name that does not exist or does not fit
    │   └── UnknownRenderMode (TypeError)  what an environment does not render
    ├── InvalidAction (ValueError)        an action that cannot be read; inside an episode it becomes a result, never a raise
    ├── DatasetError (ValueError)         a data file that is missing, damaged or lacks a field; names file and line
    ├── MissingExtra (ImportError)        an optional dependency is not installed; names the extra to install
    ├── ResetNeeded (gymnasium's too)     step() before reset() or after the episode's end
    ├── StoreError                        a trajectory store that cannot be read or written
    ├── PolicyError                       a policy that raised, did not come back, or did not give one decision a pair
    ├── StateLeakError                    an episode did not start clean, or left something in the process
    └── InfrastructureError               ours to mend, never the agent's failure: a run it hits counts as ``infra_error``
        └── SandboxUnavailable            this machine cannot isolate code; names the failing probe and the remedy

An agent's mistake is never an exception: it is a ``ToolResult`` whose status says what went wrong.
"""

from collections.abc import Iterable, Sequence

import gymnasium.error

__all__ = [
    "AgentGymError",
    "ConfigurationError",
    "DatasetError",
    "InfrastructureError",
    "InvalidAction",
    "MissingExtra",
    "PolicyError",
    "ResetNeeded",
    "SandboxUnavailable",
    "StateLeakError",
    "StoreError",
    "UnknownRenderMode",
    "unknown",
]


class AgentGymError(Exception):
    """Root of the tree."""


class ConfigurationError(AgentGymError, ValueError):
    """A keyword or name that does not exist or does not fit; the message says what was got and what is possible."""


class UnknownRenderMode(ConfigurationError, TypeError):
    """A render mode that an environment does not have.

    A ``TypeError`` too, since Stable-Baselines3's ``make_vec_env`` asks every environment for pictures and goes without on that.

    Args:
        got: What was asked for.
        known: What there is.
    """

    def __init__(self, got: object, known: Iterable[str]) -> None:
        super().__init__(str(unknown("render_mode", got, known)))
        self.got, self.known = got, tuple(known)

    def __reduce__(self) -> tuple[type["UnknownRenderMode"], tuple[object, tuple[str, ...]]]:
        return type(self), (self.got, self.known)


class InvalidAction(AgentGymError, ValueError):
    """An action that cannot be read as a tool call.

    An ``Interface`` also hands it to ``AgentEnv.step`` in an action's place, when it was given an index that stands for nothing.
    """


class DatasetError(AgentGymError, ValueError):
    """A data file that is missing, damaged, or lacks a field."""


class MissingExtra(AgentGymError, ImportError):
    """An optional dependency is not installed.

    Args:
        module: The module that could not be imported.
        extra: The extra of this package that brings it.
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"this needs {module!r}, which is not installed; install it with: pip install 'agent-gym[{extra}]'")


class ResetNeeded(AgentGymError, gymnasium.error.ResetNeeded):
    """``step()`` was called before ``reset()``, or after the episode had ended."""


class StoreError(AgentGymError):
    """A trajectory store that cannot be read or written."""


class PolicyError(AgentGymError):
    """A policy raised (then it is the cause), did not come back in time, or did not give one decision for each observation."""


class StateLeakError(AgentGymError):
    """An episode did not start as it does in a fresh environment, or something of it stays in the process.

    Args:
        message: Names the task, the channel and what is there.
        leaks: Each leak's channel, what is there, and what a fresh environment has there.
    """

    def __init__(self, message: str, leaks: Sequence[tuple[str, str, str | None]] = ()) -> None:
        super().__init__(message)
        self.leaks = tuple(leaks)

    def __reduce__(self) -> tuple[type["StateLeakError"], tuple[str, tuple[tuple[str, str, str | None], ...]]]:
        return type(self), (str(self), self.leaks)


class InfrastructureError(AgentGymError):
    """Our engine, worker or machine failed; no fault of the agent's."""


class SandboxUnavailable(InfrastructureError):
    """This machine cannot isolate code.

    Args:
        probe: The name of the probe that failed, such as ``user_namespaces``.
        detail: What the probe saw.
        remedy: The one thing to do about it.
    """

    def __init__(self, probe: str, detail: str, remedy: str) -> None:
        super().__init__(f"the sandbox cannot run here: probe {probe!r} failed ({detail}); {remedy}")
        self.probe = probe
        self.detail = detail
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["SandboxUnavailable"], tuple[str, str, str]]:
        return type(self), (self.probe, self.detail, self.remedy)


def unknown(kind: str, got: object, known: Iterable[str]) -> ConfigurationError:
    """The error for a name that does not exist: says what kind of thing, what was got, and what there is."""
    names = sorted(known)
    shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    return ConfigurationError(f"unknown {kind} {got!r}; known: {shown or 'none'}")
