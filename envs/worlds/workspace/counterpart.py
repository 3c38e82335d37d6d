"""Whom the workspace's agent can ask: the colleague who wants something."""

from agent_gym.world import Counterpart, Intent

__all__ = ["COLLEAGUE", "CONFIRM", "FOLDER", "WHICH"]

COLLEAGUE = Counterpart(
    "colleague",
    {
        "which": Intent("Which one do you mean?", r"\bwhich (one|mail|document|meeting|of)\b"),
        "folder": Intent("Which folder should it go to?", r"\b(folder|where (to|should))\b"),
        "confirm": Intent("Shall I really do that?", r"\b(really|sure|confirm|go ahead|certain)\b"),
    },
)
"""What can be asked, by intent."""

WHICH, FOLDER, CONFIRM = (intent.question for intent in COLLEAGUE.intents.values())
