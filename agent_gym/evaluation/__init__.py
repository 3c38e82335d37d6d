"""Measuring policies: episodes are played and recorded, metrics are computed from the record."""

from agent_gym.evaluation.evaluate import evaluate
from agent_gym.evaluation.intervals import bootstrap_clustered, bootstrap_macro, bootstrap_paired, wilson
from agent_gym.evaluation.metrics import summarize
from agent_gym.evaluation.robustness import robustness

__all__ = ["bootstrap_clustered", "bootstrap_macro", "bootstrap_paired", "evaluate", "robustness", "summarize", "wilson"]
