"""The environments, one folder an id, and the worlds they play in."""

if __name__ != "agent_gym.envs":
    raise ImportError("this folder is the package 'agent_gym.envs'; import it by that name")
