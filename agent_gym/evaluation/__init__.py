"""Measuring policies: episodes are played and recorded, metrics are computed from the record."""

from agent_gym.evaluation.evaluate import evaluate
from agent_gym.evaluation.intervals import bootstrap_macro, wilson
from agent_gym.evaluation.metrics import summarize

__all__ = ["bootstrap_macro", "evaluate", "summarize", "wilson"]
