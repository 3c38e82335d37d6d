"""Whom the workspace's agent can ask: the colleague who wants something."""

from agent_gym.world import Counterpart, Intent
from agent_gym.world.questions import choosing, confirming

__all__ = ["COLLEAGUE", "CONFIRM", "FOLDER", "WHICH"]

_MAIL = "mails?|e-?mails?|messages?|threads?|documents?|meetings?"
_PLACE = (
    r"\b(?:which|what|whichever) (?:other |target |mail )?(?:folder|mailbox)\b(?! (?:is|was) (?:it|this|that) in\b)"
    r"|\b(?:name|tell|specify|need|give|know|choose|pick)\b.{0,20}\bfolder\b|\bfolder (?:do|should|shall|would|please|is it to)\b"
    r"|\b(?:to|into) (?:which|what)(?: one| place)?(?: (?:should|shall|do|must|may)\b|\?)|\bdestination\b"
    r"|\bwhere to\b|\bwhere (?!is it\b|was it\b|are you\b).{0,40}\b(?:it|this|that|mail|message|thread|put|move|file|store|place)\b"
    r"|\b(?:archive|spam)\b.{0,30}\bor\b.{0,30}\b(?:archive|spam|inbox)\b"
)
_DELETE = (
    r"delet(?:e|ed|ing|ion)|remov(?:e|ed|ing|al)|eras(?:e|ed|ing)|discard(?:ed)?|destroy(?:ed)?|get rid|throw|thrown|trash(?:ed)?|gone"
)

COLLEAGUE = Counterpart(
    "colleague",
    {
        "which": Intent("Which one do you mean?", choosing(_MAIL, r"th\d{7}")),
        "folder": Intent("Which folder should it go to?", _PLACE),
        "confirm": Intent("Shall I really do that?", confirming(_DELETE)),
    },
)
"""What can be asked, by intent."""

WHICH, FOLDER, CONFIRM = (intent.question for intent in COLLEAGUE.intents.values())
