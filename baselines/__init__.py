"""The learners, one folder each."""

if __name__ != "agent_gym.baselines":
    raise ImportError("this folder is the package 'agent_gym.baselines'; import it by that name")
