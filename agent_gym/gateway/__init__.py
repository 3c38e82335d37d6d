"""The thin boundary that every call of every family goes through: checked, bounded in time, logged."""

from agent_gym.gateway.gateway import Gateway, Outcome

__all__ = ["Gateway", "Outcome"]
