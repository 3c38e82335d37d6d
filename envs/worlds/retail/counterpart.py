"""The customer on the other side of the desk: what can be asked of them."""

from agent_gym.world import Counterpart, Intent
from agent_gym.world.questions import choosing, confirming

__all__ = ["COUNTERPART"]

_CLOSE = (
    r"clos(?:e|ed|ing|ure)|delet(?:e|ed|ing|ion)|cancel(?:led|ling|lation)?|terminat(?:e|ed|ing|ion)|remov(?:e|ed|ing)|shut|gone"
    r"|deactivat(?:e|ed|ing)"
)

COUNTERPART = Counterpart(
    who="customer",
    intents={
        "which": Intent("Which of your orders do you mean?", choosing("orders?|purchases?", r"w\d{7}")),
        "confirm": Intent("Are you sure that you want this?", confirming(_CLOSE)),
        "why": Intent("Why do you want this?", r"\bwhy\b|\breasons?\b|\bhow come\b|\bwhat for\b|\bwhat makes you\b"),
    },
)
"""Asked by whoever stands at the desk."""
