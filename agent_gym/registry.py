"""The table of ids: what ``gymnasium.make`` knows once this package has been imported. Strings only; nothing is loaded here."""

__all__ = ["IDS", "OUTSIDE", "VERSION"]

VERSION = "0.1.0"
"""This package's version."""

IDS = {
    "AgentBase/ToolTask-v0": "agent_gym.envs.tool_task:ToolTask",
    "AgentBase/WebTask-v0": "agent_gym.envs.web_task:WebTask",
    "AgentBase/CodeTask-v0": "agent_gym.envs.code_task:CodeTask",
    "AgentBase/MiniWoB-v0": "agent_gym.envs.miniwob:MiniWoB",
}
"""Environment id → the `AgentEnv` behind it."""

OUTSIDE = frozenset({"AgentBase/MiniWoB-v0"})
"""Those whose tasks nobody here wrote: they need an extra, and are exempt from admission."""
