"""The customer on the other side of the desk: what can be asked of them."""

from agent_gym.world import Counterpart, Intent

__all__ = ["COUNTERPART"]

COUNTERPART = Counterpart(
    who="customer",
    intents={
        "which": Intent("Which of your orders do you mean?", r"\bwhich\b|\border number\b"),
        "confirm": Intent("Are you sure that you want this?", r"\bsure\b|\breally\b|\bconfirm"),
        "why": Intent("Why do you want this?", r"\bwhy\b|\breason\b"),
    },
)
"""Asked by whoever stands at the desk."""
