"""``agent-gym train ENV_ID``. Its options are the fields of the learner's configuration."""

import ast
import dataclasses
import inspect
import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.baselines.sb3 import TrainConfig
from agent_gym.cli.output import FaultsOption, JsonOption, RetriesOption, SetOption, StoreOption, console, parse_settings, print_json
from agent_gym.trajectories import TrajectoryStore

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
    config = TrainConfig(env_id=env_id, env_kwargs=parse_settings(settings, faults=faults, retries=retries), **options)
    from agent_gym.baselines.sb3 import train as run_training  # torch is loaded for this command alone

    folder = folder or Path("runs/train") / f"{env_id.rpartition('/')[2]}-seed{config.seed}"
    with TrajectoryStore(store).open_run(policy=config.algo, seed=config.seed, env_id=env_id) as run:
        result = run_training(config, folder, store=run, resume=resume, progress=False if quiet else None)
    shown = {
        **dataclasses.asdict(result),
        "model": str(result.model),
        "run_id": run.run_id,
        "store": str(store),
        "config": config.to_dict(),
    }
    if as_json:
        print_json(shown)
        return
    measured = f"; {result.curve[-1]['success_macro']:.3f} of {config.eval_split} tasks solved" if result.curve else ""
    console.print(f"trained for {result.steps} steps in {result.seconds:.0f} s{measured}; recorded in {store}", soft_wrap=True)
    console.print(f"model: {result.model}", soft_wrap=True)


def _with_options_of_the_configuration() -> None:
    """Gives the command an option for every field of the configuration, with the field's default and docstring."""
    own = inspect.signature(train).parameters.values()
    fields = {field.name: field for field in dataclasses.fields(TrainConfig) if field.name not in ("env_id", "env_kwargs")}
    tree = ast.parse(inspect.getsource(TrainConfig)).body[0]
    assert isinstance(tree, ast.ClassDef)
    told = {
        node.target.id: str(following.value.value)
        for node, following in itertools.pairwise(tree.body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
    }
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
