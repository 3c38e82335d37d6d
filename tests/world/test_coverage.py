"""Whatever a world's operations can do, episodes do: branch coverage of the modules in which they stand."""

import json
import subprocess
import sys

import pytest

from agent_gym.envs.worlds import load_worlds

PLAYED = """
import json, sys, tempfile
from pathlib import Path

import coverage

world, kept = sys.argv[1], tempfile.mkdtemp()
measured = coverage.Coverage(branch=True, data_file=None, include=[f"*/worlds/{world}/*"], config_file=False)
measured.start()

import gymnasium
from agent_gym.core import ToolCall
from agent_gym.core.closing import CLOSING
from agent_gym.core.schema_sample import sample_schema
from agent_gym.core.seeding import derive
from agent_gym.envs.worlds import load_worlds
from agent_gym.interface.candidates import Memory, Toolbox
from agent_gym.world import WorldTaskSet

(kind,) = load_worlds([world])
env = gymnasium.make("agent_gym:AgentBase/ToolTask-v0", interface="text", worlds=[world], split=WorldTaskSet([kind]).splits()[0])
tasks, oracle = env.get_wrapper_attr("tasks"), env.get_wrapper_attr("oracle")

def play(task_id, choose):
    observation, info = env.reset(seed=0, options={"task_id": task_id})
    seen = [observation]
    while not info["ending"]:
        observation, _, _, _, info = env.step(choose(seen))
        seen.append(observation)

class Stray:
    "Follows the oracle for a while, then calls anything with anything that was seen, and does not close."
    def __init__(self, task_id):
        self.rng, self.memory = derive("stray", task_id), None
        self.until = int(self.rng.integers(9))
    def __call__(self, seen):
        data = seen[-1]["data"]
        if self.memory is None:
            self.tools = [spec for spec in env.get_wrapper_attr("tools") if spec.name not in CLOSING]
            self.memory = Memory(data["goal"], Toolbox(self.tools))
        self.memory.update(data["last"], data["view"])
        if len(seen) <= self.until and (call := oracle(seen)).name not in CLOSING:
            return call
        spec = self.tools[int(self.rng.integers(len(self.tools)))]
        offered = [candidate.call.arguments for candidate in self.memory.candidates(spec.name)[0]]
        chosen = offered[int(self.rng.integers(len(offered)))] if offered else {}
        sampled = sample_schema(spec.parameters, self.rng) if not offered or self.rng.random() < 0.5 else {}
        return ToolCall(spec.name, {**sampled, **chosen})

for split in ("train", "transfer"):
    for family in tasks.families(split) if split in tasks.splits() else ():
        ids = tasks.ids(split, family)
        for task_id in ids[:10]:
            play(task_id, oracle)
        for task_id in ids[:20]:
            play(task_id, Stray(task_id))
        for cheat in kind.families[family.partition("/")[2]].cheats.values():
            for task_id in ids[:2]:
                play(task_id, cheat)
measured.stop()

files = {getattr(operation.run, "func", operation.run).__code__.co_filename for operation in kind.operations.values()}
files = [file for file in files if f"/worlds/{world}/" in file]
report = Path(kept, "report.json")
measured.json_report(files, outfile=str(report))
found = json.loads(report.read_text())
missing = {name: [part["missing_lines"], part["missing_branches"]] for name, part in found["files"].items()}
print(json.dumps({"percent": found["totals"]["percent_covered"], "missing": missing}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("world", [kind.name for kind in load_worlds(None)])
def test_episodes_go_through_nearly_every_branch_of_the_operations(world: str) -> None:
    done = subprocess.run([sys.executable, "-c", PLAYED, world], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["missing"], "the world's operations stand in none of its modules"
    assert found["percent"] >= 95, found["missing"]
