"""What an agent may call: one value, enforced by the gateway and nowhere else."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from agent_gym.core.tool import ToolSpec
from agent_gym.errors import ConfigurationError, unknown

__all__ = ["LEVELS", "Permissions", "issue_token"]

LEVELS: Mapping[str, Callable[[ToolSpec], bool]] = {
    "level1": lambda spec: spec.read_only,
    "level2": lambda spec: spec.read_only or not spec.annotations.get("destructiveHint", True),
    "level3": lambda _: True,
}
"""Which tools each level opens: those that change nothing; also those that destroy nothing; all."""

_KEY = os.environ.get("AGENT_GYM_TOKEN_KEY", "").encode() or secrets.token_bytes(32)
"""Signs tokens. Without the variable it is drawn anew in each process, and so are the tokens that hold."""


@dataclass(frozen=True)
class Permissions:
    """What may be called by whom.

    Attributes:
        level: One of `LEVELS`.
        identity: Who acts, and so may neither see nor change what belongs to somebody else; empty for somebody who may.
        only: Names of the tools that may be called, where not all of the level's may.
        never: Names of tools that may not.
    """

    level: str = "level3"
    identity: str = ""
    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise unknown("level of permissions", self.level, LEVELS)

    def allow(self, spec: ToolSpec) -> bool:
        """Whether a tool may be called."""
        return self._named(spec) and (spec.carries or LEVELS[self.level](spec))

    def _named(self, spec: ToolSpec) -> bool:
        return spec.name not in self.never and (self.only is None or spec.name in self.only)

    def narrowed(self, level: str = "level3", only: Collection[str] | None = None, never: Collection[str] = ()) -> "Permissions":
        """These, and nothing that further permissions do not give.

        Raises:
            ConfigurationError: There is no such level.
        """
        Permissions(level)
        kept = self.only if only is None else frozenset(only) if self.only is None else self.only & frozenset(only)
        return replace(self, level=min(self.level, level, key=list(LEVELS).index), only=kept, never=self.never | frozenset(never))

    def refusal(self, spec: ToolSpec, owners: Callable[[], Collection[Collection[str]]]) -> str:
        """Why a call is not permitted, or nothing.

        Args:
            spec: The tool.
            owners: Tells to whom is open each thing that the call names; looked up only where it matters.
        """
        if not self.allow(spec):
            return f"{spec.name} is not permitted to {self.identity or 'the agent'}" + (f" at {self.level}" if self._named(spec) else "")
        if self.identity and any(self.identity not in one for one in owners()):
            return f"{spec.name} is not permitted to {self.identity} for what belongs to somebody else"
        return ""

    @classmethod
    def of(cls, given: object, scope: str) -> "Permissions":
        """Reads the JSON form: a level, or ``{"token"}`` as `issue_token` gave it for this scope; None opens everything.

        Raises:
            ConfigurationError: It is no such thing, or the token was not issued for this scope.
        """
        if given is None or isinstance(given, Permissions):
            return given or cls()
        if isinstance(given, str):
            return cls(given)
        if not isinstance(given, Mapping) or set(given) != {"token"} or not isinstance(given["token"], str):
            raise ConfigurationError(f'permissions must be one of {", ".join(LEVELS)} or {{"token": …}}, got {given!r}')
        identity, _, rest = given["token"].partition("/")
        level, _, signature = rest.partition("/")
        if not hmac.compare_digest(signature.encode(errors="replace"), _signature(scope, identity, level).encode()):
            raise ConfigurationError(
                f"permissions: the token of {identity[:64]!r} was not issued for {scope!r}, or in another process; for tokens that hold "
                "in several set AGENT_GYM_TOKEN_KEY"
            )
        return cls(level, identity)


def issue_token(scope: str, identity: str, level: str) -> str:
    """A token that opens a level to an identity in one environment, and nowhere else; what belongs to others stays closed.

    It holds in this process and in those that are forked from it; with the variable ``AGENT_GYM_TOKEN_KEY`` set to one secret, in all
    that have it.

    Args:
        scope: The environment's class, such as ``ToolTask``.
        identity: Who will act; any text without ``/``.
        level: One of `LEVELS`.

    Raises:
        ConfigurationError: There is no such level, or the identity has a ``/``.
    """
    Permissions(level, identity)
    if "/" in identity:
        raise ConfigurationError(f"an identity has no '/', got {identity!r}")
    return f"{identity}/{level}/{_signature(scope, identity, level)}"


def _signature(scope: str, identity: str, level: str) -> str:
    return hmac.new(_KEY, "\x1f".join((scope, identity, level)).encode(errors="replace"), hashlib.sha256).hexdigest()
