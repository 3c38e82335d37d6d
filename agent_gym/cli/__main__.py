"""``python -m agent_gym.cli``: the command, where it is not on the path."""

from agent_gym.cli import main

main()
