"""``agent-gym check reward``: whether the reward says what it should, before anything is learned from it."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agent_gym.core.policy import Policy
from agent_gym.core.verdict import Check, Ending
from agent_gym.errors import ConfigurationError
from agent_gym.evaluation.checks.playing import Played, drawn, opened, play
from agent_gym.policies import load
from agent_gym.wrappers import NormalizeReturn

__all__ = ["check_reward"]

_POLICIES = {"oracle": "text", "random": "array", "spam": "text", "refuse-always": "text", "noop": "text"}
_COSTS = ("violation", "overreach")
_CLOSE = 1e-6
_GAMMA = 0.98


def check_reward(
    env_id: str, *, split: str = "train", episodes: int = 10, seed: int = 0, env_kwargs: Mapping[str, Any] | None = None
) -> list[Check]:
    """Plays scripted policies, the oracle among them, on the same tasks, and looks at every reward.

    Args:
        env_id: An environment of this package.
        split: The split that tasks are drawn from.
        episodes: Tasks that each policy plays, from 1.
        seed: Of the draw and of the policies.
        env_kwargs: Further keywords of the environment.

    Returns:
        What was checked, in words, with what was seen; all have passed where the reward can be learned from.

    Raises:
        ConfigurationError: There is no such environment or keyword.
        SandboxUnavailable: The tasks run code, and this machine cannot isolate it.
    """
    if episodes < 1:
        raise ConfigurationError(f"episodes must be at least 1, got {episodes}")
    keywords = dict(env_kwargs or {})
    task_ids = drawn(env_id, split, keywords, episodes, seed)
    with opened(env_id, split, keywords) as env:
        solvable = all(env.get_wrapper_attr("tasks").get(task_id).oracle_kind != "none" for task_id in task_ids)
    policies = [policy for policy in _POLICIES if policy != "oracle" or solvable]

    def played(policies: Sequence[str], **more: Any) -> list[Played]:
        found: list[Played] = []
        for policy in policies:
            with opened(env_id, split, keywords | more, _POLICIES[policy]) as env:
                found += play(env, load(policy, env, seed=seed), task_ids, seed)
        return found

    plain = played(policies)
    checks = [
        _each_step("parts_sum_to_the_reward", plain, _unsummed),
        _each_step("the_record_says_the_same", plain, _differs),
        _each_step("parts_have_the_right_sign", plain, _wrong_sign),
        _success_pays(plain),
        _violation_costs(plain),
        *(_oracle_is_best(plain) if solvable else ()),
    ]
    if solvable:
        gamma = float(keywords.get("gamma", _GAMMA))
        checks.append(_shaping_cancels_out(played(["oracle", "noop", "refuse-always"], shaping="milestones", gamma=gamma), gamma))
    if checks[0].passed:
        with opened(env_id, split, keywords) as env:
            texts = [load(policy, env, seed=seed) for policy in policies if _POLICIES[policy] == "text"]
            checks.append(_normaliser(env, texts, plain, task_ids, seed))
    return checks


def _each_step(name: str, played: Sequence[Played], wrong: Callable[[Any], str]) -> Check:
    """A check of every step by itself."""
    steps = 0
    for episode in played:
        for number, step in enumerate(episode.steps, 1):
            steps += 1
            if found := wrong(step):
                return Check(name, False, f"{episode.policy} on {episode.task_id}, step {number}: {found}")
    return Check(name, True, f"{steps} steps")


def _unsummed(step: Any) -> str:
    parts = step.info["reward_parts"]
    if not step.info["reward_valid"]:
        return "" if step.reward == 0.0 else f"the reward is not valid, and yet {step.reward:g} instead of 0"
    total = sum(parts.values())
    return "" if math.isclose(total, step.reward, abs_tol=_CLOSE) else f"the reward is {step.reward:g}, its parts {parts} sum to {total:g}"


def _differs(step: Any) -> str:
    record, valid = step.record, step.info["reward_valid"]
    given = (valid, step.reward if valid else None, step.info["reward_parts"])
    kept = (record.reward_valid, record.reward, record.reward_parts)
    return "" if given == kept else f"validity, reward and parts are {given}, in the record {kept}"


def _wrong_sign(step: Any) -> str:
    parts = step.info["reward_parts"]
    if parts.get("outcome", 0.0) < 0:
        return f"outcome is {parts['outcome']:g}, below 0"
    return next((f"{name} is {parts[name]:g}, above 0" for name in _COSTS if parts.get(name, 0.0) > 0), "")


def _success_pays(played: Sequence[Played]) -> Check:
    """Exactly the episodes that succeed are paid for their outcome."""
    name = "success_pays_and_nothing_else_does"
    for episode in played:
        success, paid = episode.ending == Ending.SUCCESS, episode.sum_of("outcome")
        if episode.valid and success != (paid > 0):
            return Check(name, False, f"{episode.policy} on {episode.task_id} ended as {episode.ending}, outcome {paid:g}")
    return Check(name, True, f"{sum(episode.ending == Ending.SUCCESS for episode in played)} successes in {len(played)} episodes")


def _violation_costs(played: Sequence[Played]) -> Check:
    """A violation leaves an episode with less than nothing."""
    violations = [episode for episode in played if episode.ending == Ending.VIOLATION and episode.valid]
    for episode in violations:
        if not episode.steps[-1].reward < 0:
            seen = f"{episode.policy} on {episode.task_id}: the step of the violation was given {episode.steps[-1].reward:g}"
            return Check("a_violation_costs", False, seen)
    return Check("a_violation_costs", True, f"{len(violations)} violations in {len(played)} episodes")


def _oracle_is_best(played: Sequence[Played]) -> Iterator[Check]:
    """Doing the task right earns more than anything else that was tried."""
    totals: dict[str, list[float]] = defaultdict(list)
    for episode in played:
        if episode.valid:
            totals[episode.policy].append(episode.total)
    means = {policy: math.fsum(values) / len(values) for policy, values in totals.items()}
    oracle = means.pop("oracle", -math.inf)
    yield Check("the_oracle_is_paid", oracle > 0, f"on average {oracle:.3f}")
    for policy, mean in means.items():
        yield Check(f"the_oracle_earns_more_than_{policy.replace('-', '_')}", oracle > mean, f"{oracle:.3f} and {mean:.3f}")


def _shaping_cancels_out(played: Sequence[Played], gamma: float) -> Check:
    """Over an episode that terminates, shaping sums to the same whatever was done: it cannot change which policy is best."""
    sums: dict[str, dict[str, float]] = defaultdict(dict)
    for episode in played:
        if episode.valid and episode.steps[-1].terminated:
            sums[episode.task_id][episode.policy] = episode.sum_of("shaping", gamma)
    for task_id, by_policy in sums.items():
        if max(by_policy.values()) - min(by_policy.values()) > _CLOSE:
            told = ", ".join(f"{policy} {value:.3f}" for policy, value in by_policy.items())
            return Check("shaping_cancels_out", False, f"{task_id}, discounted sums of shaping: {told}")
    return Check("shaping_cancels_out", True, f"{len(sums)} tasks")


def _normaliser(env: Any, policies: Sequence[Policy], plain: Sequence[Played], task_ids: Sequence[str], seed: int) -> Check:
    """A normaliser around it divides the rewards of each episode by one finite number above 0."""
    name = "a_normaliser_only_scales"
    wrapped = NormalizeReturn(env, window=8, per=None)
    scales = [1.0]
    for policy in policies:
        bare = [episode for episode in plain if episode.policy == policy.name]
        for before, after in zip(bare, play(wrapped, policy, task_ids, seed), strict=True):
            for one, other in zip(before.steps, after.steps, strict=True):
                if not math.isclose(other.reward * scales[-1], one.reward, abs_tol=_CLOSE):
                    seen = f"{policy.name} on {before.task_id}: {one.reward:g} became {other.reward:g} at the scale {scales[-1]:g}"
                    return Check(name, False, seen)
            scales += wrapped.scales.values()
    fits = all(math.isfinite(scale) and scale > 0 for scale in scales)
    return Check(name, fits, f"scales from {min(scales):.3g} to {max(scales):.3g}")
