"""Finds a policy by name, by the file it was saved to, or by import string."""

import json
import zipfile
from pathlib import Path
from typing import Any

import gymnasium

from agent_gym.core.policy import Policy
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.factory import load_object

__all__ = ["MODEL_CARD", "POLICIES", "load"]

POLICIES = {
    "random": "agent_gym.policies.choosing:RandomPolicy",
    "heuristic": "agent_gym.policies.choosing:HeuristicPolicy",
    "random-action": "agent_gym.policies.scripted:RandomActionPolicy",
    "random-until-end": "agent_gym.policies.scripted:RandomUntilEndPolicy",
    "noop": "agent_gym.policies.scripted:NoopPolicy",
    "refuse-always": "agent_gym.policies.scripted:RefuseAlwaysPolicy",
    "finish-early": "agent_gym.policies.scripted:FinishEarlyPolicy",
    "first-candidate": "agent_gym.policies.choosing:FirstCandidatePolicy",
    "spam": "agent_gym.policies.scripted:SpamPolicy",
    "oracle": "agent_gym.policies.scripted:OraclePolicy",
    "oracle-fault-aware": "agent_gym.policies.scripted:FaultAwareOraclePolicy",
}
"""The policies that need no file, by name."""

MODEL_CARD = "agent_gym.json"
"""The JSON object inside a saved model's zip; its key ``policy`` is the import string of the class that loads the file."""

_DEFAULT_LOADER = "agent_gym.baselines.sb3:SB3Policy"


def load(name: str, env: gymnasium.Env[Any, Any], seed: int = 0) -> Policy:
    """Makes a policy.

    Args:
        name: One of `POLICIES`; or the path of a saved model, ``*.zip`` (like every pickle, load only files that you trust);
            or an import string ``package.module:name`` of something that is called with ``(env, seed=seed)``.
        env: An environment like those that the policy will act in, for its tools and its oracle.
        seed: Root of the policy's randomness.

    Raises:
        ConfigurationError: There is no such policy, or the file is missing or damaged.
        MissingExtra: The policy needs a package that is not installed.
    """
    if name.endswith(".zip"):
        return _check(name, load_object(_loader_of(Path(name))).load(name, seed=seed))
    if name not in POLICIES and ":" not in name:
        raise unknown("policy", name, [*POLICIES, "a saved model (*.zip)", "an import string (package.module:name)"])
    make = load_object(POLICIES.get(name, name))
    if not callable(make) or (isinstance(make, type) and not issubclass(make, Policy)):
        raise ConfigurationError(f"{name!r} is no agent_gym Policy, nor makes one")
    return _check(name, make(env, seed=seed))


def _check(name: str, policy: Any) -> Policy:
    if not isinstance(policy, Policy):
        raise ConfigurationError(f"{name!r} made a {type(policy).__name__}, which is no agent_gym Policy")
    return policy


def _loader_of(path: Path) -> str:
    """The import string of the class that loads a saved model."""
    if not path.is_file():
        raise ConfigurationError(f"there is no saved model {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            if MODEL_CARD not in archive.namelist():
                return _DEFAULT_LOADER
            return str(json.loads(archive.read(MODEL_CARD))["policy"])
    except (zipfile.BadZipFile, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ConfigurationError(f"{str(path)!r} is no saved model, or a damaged one: {error}") from error
