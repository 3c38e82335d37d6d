"""The tables of a trajectory store, field by field. A field's documentation is also kept in the Parquet files.

Rules: columns are only ever added; every column may be null (not known, never a made-up zero); no ``map<>`` and no unions, since
Hugging Face ``datasets`` reads neither; free-form values are JSON text, since Arrow widens structs with keys that were not there;
the run is the partition (``run_id=…`` in the path) and no column of the file. Times are UTC. A text over 64 KB is null in its column
and a file under ``blobs/`` instead, which ``blobs`` names by the BLAKE2b-256 of its content; `TrajectoryStore.steps` and the like
put it back. What retention has dropped of a row (`agent_gym.trajectories.retention`) is null, too; ``blobs`` then names it still, with null
for its bytes, and an event of the kind ``dropped_tokens``, ``dropped_blobs`` or ``dropped_steps`` says why.
"""

import pyarrow as pa

from agent_gym.trajectories.versions import SCHEMA_VERSION

__all__ = ["EPISODES", "EVENTS", "SCHEMA_VERSION", "SORTED_BY", "STEPS", "TABLES", "TOKENS", "TOOL_CALLS"]


def _schema(*fields: tuple[str, pa.DataType, str]) -> pa.Schema:
    documented = [pa.field(name, kind, metadata={"doc": doc}) for name, kind, doc in fields]
    return pa.schema(documented, metadata={"agent_gym.schema_version": str(SCHEMA_VERSION)})


_TEXT = pa.string()
_TIME = pa.timestamp("us", tz="UTC")
_SCORES = pa.list_(pa.struct([("name", _TEXT), ("score", pa.float64())]))
_COUNTS = pa.list_(pa.struct([("name", _TEXT), ("count", pa.int32())]))
_NAMED_STEPS = pa.list_(pa.struct([("name", _TEXT), ("step", pa.int32())]))
_BLOBS = pa.list_(pa.struct([("column", _TEXT), ("digest", _TEXT), ("bytes", pa.int64())]))

EPISODES = _schema(
    ("episode_id", _TEXT, "run, writer and number within the writer; unique, and sorted as the writer recorded them"),
    ("parent_episode_id", _TEXT, "the episode whose state this one went on from, after a set_state"),
    ("env_id", _TEXT, "Gymnasium id"),
    ("env_version", _TEXT, "bumped when a task, a world or the way of judging changes"),
    ("task_id", _TEXT, "the same id is the same task for ever"),
    ("task_type", _TEXT, "family, as world/family"),
    ("split", _TEXT, "train, validation, test, …"),
    ("difficulty", pa.float32(), "0 (easy) to 1 (hard)"),
    ("capabilities", pa.list_(_TEXT), "what solving the task takes"),
    ("goal", _TEXT, "what the agent was asked to do"),
    ("max_steps", pa.int32(), "the task's step limit"),
    ("seed", pa.int64(), "root seed: what reset(seed=…) was given, or drawn"),
    ("episode_index", pa.int32(), "resets since the root seed was set"),
    ("reset_options", _TEXT, "JSON of reset(options=…)"),
    ("source", _TEXT, "who acted: oracle, policy, human"),
    ("policy_id", _TEXT, "name of the policy"),
    ("stage", _TEXT, "what the runner's schedule was for, where it told: explore, exploit"),
    ("policy_version_start", pa.int64(), "policy version at the first step that told one"),
    ("policy_version_end", pa.int64(), "policy version at the last step that told one"),
    ("n_turns", pa.int32(), "steps with an action"),
    ("n_tool_calls", pa.int32(), "calls that reached the gateway, retries folded into one, closing tools left out"),
    ("n_tool_failures", pa.int32(), "those whose final status is a failure (ok, empty, degraded are none)"),
    ("n_invalid_actions", pa.int32(), "steps whose action was unreadable, named no tool or broke its schema"),
    ("n_retries", pa.int32(), "attempts beyond the first of each call"),
    ("n_faults", pa.int32(), "attempts into which a fault was injected"),
    ("retry_safety", _COUNTS, "how often failures were dealt with unwisely, by kind, those above zero; see agent_gym.gateway.safety"),
    ("n_useless_questions", pa.int32(), "questions that brought nothing new; null where there was nobody to ask"),
    ("milestones", _NAMED_STEPS, "milestones and the step at which each was first reached"),
    ("reward_total", pa.float64(), "sum of the rewards; null where the reward is not valid or the episode did not end"),
    ("reward_parts", _SCORES, "sums of the named parts that were ever other than zero"),
    ("reward_valid", pa.bool_(), "false for infra_error and interrupted: mask it, never read it as 0"),
    ("success", pa.bool_(), "null where nobody knows"),
    ("outcome", _TEXT, "success, failure, abstained, truncated, infra_error, interrupted"),
    (
        "end_reason",
        _TEXT,
        "the ending: success, failure, violation, abstained, step_limit, deadline, budget, infra_error; null if interrupted",
    ),
    ("error", _TEXT, "what failed, for infra_error"),
    ("checks", _TEXT, "JSON list of what the verdict rests on: name, passed, detail"),
    ("changes", _TEXT, "JSON list of what the episode changed: where, key, before, after"),
    ("gaps", pa.list_(_TEXT), "what could not be shown or kept, by name"),
    ("prompt_tokens", pa.int64(), "sum, where the policy told it"),
    ("completion_tokens", pa.int64(), "sum, where the policy told it"),
    ("cost_usd", pa.float64(), "sum, where the policy told it"),
    ("env_us", pa.int64(), "microseconds spent in the environment"),
    ("grade_us", pa.int64(), "microseconds of those spent on the verdict"),
    ("tool_us", pa.int64(), "microseconds of those spent in tools, every attempt counted"),
    ("model_us", pa.int64(), "microseconds the policy took, where it told"),
    ("started_at", _TIME, "when the reset was recorded"),
    ("ended_at", _TIME, "when the last step was recorded"),
    ("initial_state_digest", _TEXT, "digest of the state after the reset"),
    ("final_state_digest", _TEXT, "digest of the state after the last step"),
    ("tools_version", _TEXT, "digest of the tools that were offered: names, descriptions, parameters"),
    ("prompt_version", _TEXT, "version of the policy's prompt, where told; else the digest of the environment's rules"),
    ("code_version", _TEXT, "this package's version and the digest of its source files"),
    ("schema_version", pa.int16(), "schema of whoever recorded it"),
    ("human_s", pa.float64(), "seconds that a person took to act; null where nobody did"),
    ("tools", _TEXT, "JSON list of the tools that were offered, in the form of OpenAI-style chat APIs; always a blob"),
    (
        "env_spec",
        _TEXT,
        "JSON of what gymnasium.make takes to build what was recorded, beside env_id: kwargs, max_episode_steps, wrappers; "
        "null where that is no JSON",
    ),
    ("task_digest", _TEXT, "digest of the whole task, what only its grader knows included"),
    ("blobs", _BLOBS, "texts of this row that were too long for it, by column"),
)
"""One row an episode, however it went."""

STEPS = _schema(
    ("episode_id", _TEXT, "the episode"),
    ("step", pa.int32(), "from 0, the reset"),
    ("t_us", pa.int64(), "microseconds since 1970 at which the step was recorded"),
    ("obs_text", _TEXT, "the rich observation's text after the step"),
    ("obs_data", _TEXT, "JSON of the rich observation's data"),
    ("action", _TEXT, "JSON of the call as it was read, its arguments in their order; null for the reset and for what could not be read"),
    ("given", _TEXT, "what step() was given where it was an index or text"),
    ("action_valid", pa.bool_(), "null for the reset"),
    ("invalid_reason", _TEXT, "what was wrong and where"),
    ("status", _TEXT, "status of the result"),
    ("reward", pa.float64(), "as the learner got it; null where it is not valid"),
    ("reward_parts", _SCORES, "named parts other than zero"),
    ("terminated", pa.bool_(), "the task itself ended"),
    ("truncated", pa.bool_(), "the patience with it ended"),
    ("ending", _TEXT, "why the episode ended; null while it runs"),
    ("state_digest", _TEXT, "digest of the state after the step"),
    ("milestones", pa.list_(_TEXT), "milestones reached so far"),
    ("gaps", pa.list_(_TEXT), "what could not be shown or kept, by name"),
    ("logprob", pa.float64(), "log-probability of the action in nats, where the policy told it"),
    ("policy_version", pa.int64(), "version of the policy that acted, where it told"),
    ("prompt_tokens", pa.int64(), "where the policy told it"),
    ("completion_tokens", pa.int64(), "where the policy told it"),
    ("cost_usd", pa.float64(), "where the policy told it"),
    ("model_us", pa.int64(), "microseconds the policy took, where it told"),
    ("note", _TEXT, "JSON object of whatever else the policy noted"),
    ("env_us", pa.int64(), "microseconds spent in the environment"),
    ("grade_us", pa.int64(), "microseconds of those spent on the verdict"),
    ("obs_image", _TEXT, "digest of the observation's image, a PNG under blobs/"),
    ("obs_digest", _TEXT, "digest of the whole observation: text, data and image"),
    ("rng_digest", _TEXT, "digest of the episode's randomness so far: its seeds, and the faults, waits and keys that were drawn"),
    ("human_s", pa.float64(), "seconds that a person took to act"),
    ("blobs", _BLOBS, "texts of this row that were too long for it, by column"),
)
"""One row a step; row 0 of an episode is its reset."""

TOOL_CALLS = _schema(
    ("episode_id", _TEXT, "the episode"),
    ("step", pa.int32(), "the step"),
    ("call_index", pa.int16(), "number of the call within the step, from 0"),
    ("attempt", pa.int16(), "from 1"),
    ("tool", _TEXT, "the name that was called"),
    ("arguments", _TEXT, "JSON object"),
    ("known_tool", pa.bool_(), "false where no tool of that name is offered"),
    ("args_valid", pa.bool_(), "whether the arguments passed the tool's schema"),
    ("status", _TEXT, "status of this attempt"),
    ("result", _TEXT, "the result's text"),
    ("structured", _TEXT, "JSON of the structured result"),
    ("retry_after_s", pa.float64(), "seconds of virtual time after which another try makes sense"),
    ("error", _TEXT, "traceback of a tool that raised"),
    ("effect", _TEXT, "read, idempotent or write"),
    ("started_us", pa.int64(), "microseconds of the worker's monotonic clock"),
    ("dur_us", pa.int64(), "microseconds"),
    ("key", _TEXT, "the idempotency key it carried"),
    ("waited_s", pa.float64(), "virtual seconds that the gateway waited before it"),
    ("fault", _TEXT, "the kind of fault that was injected into it"),
    ("took_effect", pa.bool_(), "whether a write took effect, whatever the agent was told; false for a read"),
    ("from_cache", pa.bool_(), "whether it is the answer to an earlier call of the same"),
    ("blobs", _BLOBS, "texts of this row that were too long for it, by column"),
)
"""One row an attempt of a call."""

TOKENS = _schema(
    ("episode_id", _TEXT, "the episode"),
    ("step", pa.int32(), "the step whose action they are"),
    ("prompt_token_ids", pa.list_(pa.int32()), "those added to the prompt since the step before"),
    ("completion_token_ids", pa.list_(pa.int32()), "as sampled; tokenizing the text again can give others"),
    ("logprobs", pa.list_(pa.float32()), "of the completion's tokens, in nats"),
    ("loss_mask", pa.list_(pa.bool_()), "which of the completion's tokens are trained on"),
    ("policy_version", pa.int64(), "version of the policy that sampled them, where it told"),
)
"""One row a step whose policy noted its tokens; most stores have none."""

EVENTS = _schema(
    ("event_id", _TEXT, "unique"),
    ("episode_id", _TEXT, "the episode; null where it concerns the run"),
    ("step", pa.int32(), "the step, where it concerns one"),
    ("kind", _TEXT, "what happened, in a word: score_edit, replay, annotation, pin, unpin, flag, dropped_steps, …"),
    ("author", _TEXT, "who did it"),
    ("reason", _TEXT, "why"),
    ("payload", _TEXT, "JSON of whatever else belongs to it"),
    ("happened_at", _TIME, "when"),
    ("blobs", _BLOBS, "texts of this row that were too long for it, by column"),
)
"""One row for whatever happens to an episode after it was recorded. Recorded rows themselves never change."""

TABLES: dict[str, pa.Schema] = {"steps": STEPS, "tool_calls": TOOL_CALLS, "tokens": TOKENS, "events": EVENTS, "episodes": EPISODES}
"""The tables by name, in the order in which a part's files are put in place: the index of episodes last."""

SORTED_BY: dict[str, tuple[str, ...]] = {
    "steps": ("episode_id", "step"),
    "tool_calls": ("episode_id", "step", "call_index", "attempt"),
    "tokens": ("episode_id", "step"),
    "events": ("episode_id", "event_id"),
    "episodes": ("episode_id",),
}
"""How the rows of a part stand."""
