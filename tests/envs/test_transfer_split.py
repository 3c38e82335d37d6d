"""What is held out: a world as a whole, and two families at least of every other; no other split has any of it."""

from agent_gym.envs.worlds import load_worlds
from agent_gym.world import WorldTaskSet

WORLDS = load_worlds(None)


def test_a_world_and_two_families_of_each_other_world_are_held_out() -> None:
    tasks = WorldTaskSet(WORLDS)
    held_out = set(tasks.families("transfer"))
    whole = [kind for kind in WORLDS if all(family.transfer for family in kind.families.values())]
    assert whole
    for kind in WORLDS:
        assert len([family for family in held_out if family.startswith(f"{kind.name}/")]) >= 2
    for split in set(tasks.splits()) - {"transfer"}:
        assert held_out.isdisjoint(tasks.families(split))
        assert not any(family.startswith(f"{kind.name}/") for kind in whole for family in tasks.families(split))
