"""``agent-gym train ENV_ID``. Its options are the fields of the learner's configuration."""

import ast
import dataclasses
import inspect
import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.baselines.candidate_ppo import CandidatePPOConfig
from agent_gym.baselines.learners import LEARNERS
from agent_gym.baselines.sb3 import TrainConfig
from agent_gym.cli.output import FaultsOption, JsonOption, RetriesOption, SetOption, StoreOption, console, parse_settings, print_json
from agent_gym.errors import ConfigurationError, unknown
from agent_gym.factory import load_object
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.versions import versions

__all__ = ["train"]


def train(
    *,
    env_id: Annotated[str, typer.Argument(help="An environment's id, such as AgentBase/ToolTask-v0.")],
    folder: Annotated[Path | None, typer.Option(help="The run's folder; runs/train/<id>-seed<seed> by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's newest checkpoint, if there is one.")] = False,
    faults: FaultsOption = None,
    retries: RetriesOption = None,
    settings: SetOption = None,
    store: StoreOption = Path("runs/store"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    as_json: JsonOption = False,
    **options: Any,
) -> None:
    """Train a policy: clone oracle demonstrations, then PPO on the outcome reward. Every episode is recorded."""
    config = _config(options, env_id=env_id, env_kwargs=parse_settings(settings, faults=faults, retries=retries))
    run_training = load_object(LEARNERS[config.algo][1])  # torch is loaded for this command alone

    folder = folder or Path("runs/train") / f"{env_id.rpartition('/')[2]}-seed{config.seed}"
    with TrajectoryStore(store).open_run(policy=config.algo, seed=config.seed, env_id=env_id) as run:
        result = run_training(config, folder, store=run, resume=resume, progress=False if quiet else None)
    shown = {
        **dataclasses.asdict(result),
        "model": str(result.model),
        "run_id": run.run_id,
        "store": str(store),
        "config": config.to_dict(),
        "versions": versions(),
    }
    if as_json:
        print_json(shown)
        return
    measured = f"; {result.curve[-1]['success_macro']:.3f} of {config.eval_split} tasks solved" if result.curve else ""
    console.print(f"trained for {result.steps} steps in {result.seconds:.0f} s{measured}; recorded in {store}", soft_wrap=True)
    console.print(f"model: {result.model}", soft_wrap=True)


def _config(options: dict[str, Any], **about: Any) -> TrainConfig:
    """The algorithm's configuration.

    Raises:
        ConfigurationError: There is no such algorithm, or an option is for others only.
    """
    algo = options["algo"]
    if algo not in LEARNERS:
        raise unknown("algo", algo, LEARNERS)
    kind = LEARNERS[algo][0]
    known = {field.name for field in dataclasses.fields(kind)}
    for field in dataclasses.fields(CandidatePPOConfig):
        if field.name in options and field.name not in known and options[field.name] != field.default:
            raise ConfigurationError(
                f"{field.name} is an option of candidate-ppo, not of {algo}; leave it out, or pass --algo candidate-ppo"
            )
    return kind(**about, **{name: value for name, value in options.items() if name in known})


def _docstrings(kind: type[TrainConfig]) -> dict[str, str]:
    """The docstrings of a configuration's own fields."""
    tree = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        node.target.id: str(following.value.value)
        for node, following in itertools.pairwise(tree.body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
    }


def _with_options_of_the_configuration() -> None:
    """Gives the command an option for every field of the configurations, with the field's default and docstring."""
    own = inspect.signature(train).parameters.values()
    shared = {field.name: field for field in dataclasses.fields(TrainConfig)}  # whose defaults hold where both know a name
    fields = {field.name: shared.get(field.name, field) for field in dataclasses.fields(CandidatePPOConfig)}
    for given in ("env_id", "env_kwargs"):
        del fields[given]
    told = {name: "Of candidate-ppo: " + text for name, text in _docstrings(CandidatePPOConfig).items()} | _docstrings(TrainConfig)
    told["algo"] += " ``candidate-ppo``: any number of candidates, by what their texts say."
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[field.type, typer.Option(help=told[name].replace("``", ""))],
        )
        for name, field in fields.items()
    ]
    kept = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    train.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]


_with_options_of_the_configuration()
