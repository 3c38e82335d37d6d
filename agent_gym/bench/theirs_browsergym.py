"""BrowserGym's side of a comparison: a program that is run in a virtual environment that has it, and imports nothing of this package.

It reads ``{"program", "pages", "seeds", "keywords"}`` from its standard input and writes ``{"page_seeds", "goals", "episode_s"}`` to
its standard output: for each seed the seed that the page gets, what it asks, and how long its episode took, in seconds. The first
seed warms up and is not told.
"""

import json
import os
import pathlib
import re
import sys
import tempfile
import time
from typing import Any


def _episode(env: Any, seed: int, told: Any) -> tuple[str, float]:
    """Resets, scrolls four times by nothing, and clicks the right button; each observation is made a text, as a model would read it."""
    from browsergym.utils.obs import flatten_axtree_to_str

    started = time.perf_counter()
    observation, _ = env.reset(seed=seed)
    flatten_axtree_to_str(observation["axtree_object"])
    for _ in range(4):
        observation, *_ = env.step("scroll(0, 0)")
        flatten_axtree_to_str(observation["axtree_object"])
    wanted = re.fullmatch(r'Click on the "(.*)" button\.', observation["goal"])
    for node in observation["axtree_object"]["nodes"]:
        if node.get("role", {}).get("value") == "button" and wanted and node["name"]["value"] == wanted[1]:
            observation, reward, terminated, *_ = env.step(f"click('{node['browsergym_id']}')")
            flatten_axtree_to_str(observation["axtree_object"])
            if (reward, terminated) != (1.0, True):
                sys.exit(f"seed {seed}: the click gave {reward}, terminated {terminated}")
            return observation["goal"], time.perf_counter() - started
    sys.exit(f"seed {seed}: no such button: {observation['goal']} {told}")


def main() -> None:
    """Plays the episodes."""
    wanted = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLAYWRIGHT_BROWSERS_PATH"] = folder  # where it looks for the browser that it came with
        os.environ["MINIWOB_URL"] = f"file://{wanted['pages']}/miniwob/"
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            program = pathlib.Path(playwright.chromium.executable_path)
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec "{wanted["program"]}" "$@"\n')
        program.chmod(0o755)
        import browsergym.miniwob  # noqa: F401 - registers the ids
        import gymnasium
        import numpy as np

        env = gymnasium.make("browsergym/miniwob.click-button", disable_env_checker=True, **wanted["keywords"])
        told: dict[str, list[Any]] = {"page_seeds": [], "goals": [], "episode_s": []}
        for seed in wanted["seeds"]:
            goal, took = _episode(env, seed, wanted)
            told["page_seeds"].append(int(np.random.RandomState(seed).randint(0, 1_000_000)))
            told["goals"].append(goal)
            told["episode_s"].append(took)
        env.close()
        json.dump({key: values[1:] for key, values in told.items()}, sys.stdout)


if __name__ == "__main__":
    main()
