"""How people put a question: patterns for `agent_gym.world.counterpart.Intent`, from what a world's questions are about."""

__all__ = ["choosing", "confirming"]

_EXACT = "(?:right |exact |correct |specific |particular |other )?"
_CLAUSE = r"(?:^|[^\w' ] ?|\b(?:so|then|and|but|now|ok|okay|please|just|again|asking|check|know if|know whether|whether) )"
"""Where a clause begins: "Shall I do it" asks whether, "when shall I do it" asks something else."""
_SOME = r"(?:[\w']+ ){0,3}"


def choosing(things: str, ids: str) -> str:
    """The question which of several is meant.

    Args:
        things: What is chosen among, as alternatives of a regular expression: ``orders?``.
        ids: What their ids look like, as a regular expression, in lower case.
    """
    one = rf"(?:ones?|{things})"
    several = rf"(?:them|these|those|the (?:two|three|ones)|(?:the |your |my )?(?:two |three )?(?:{things}))"
    told = r"(?:what|tell|give|need|know|share|provide|have|state|send)"
    pointed = r"(?:specify|clarify|identify|point out|point me to|choose|pick|select|name|tell me|say)"
    return "|".join(
        (
            rf"(?<!\bto )(?<!\binto )(?<!\bin )\b(?:which|what) {_EXACT}(?:{one}|of {several})\b(?!'s)",
            r"\bwhich(?: is it)?\?",
            rf"(?<!what )\b(?:do|did|are) you {_SOME}(?:mean|meaning|refer|referring|talking|thinking)\b.{{0,80}}\b(?:or|{one}|{ids})\b",
            rf"\b{ids}\b.{{0,80}}\bor\b.{{0,80}}\b{ids}\b",
            r"\b(?:first|older|oldest|earlier|former)\b.{0,40}\bor\b.{0,20}\b(?:second|last|newer|newest|later|latter)\b",
            r"\b(?:newer|newest|later|latest)\b.{0,40}\bor\b.{0,20}\b(?:first|older|oldest|earlier)\b",
            rf"\b{told}\b.{{0,30}}\b(?:{things}|its|the) (?:id|identifier)\b",
            rf"\b{told}\b.{{0,30}}\b(?:{things}) number\b",
            rf"\b(?:id|identifier|number) of (?:the|your|that) {_EXACT}{one}\b(?!'s)",
            rf"\b{pointed} (?:the|your|one|an?) {_EXACT}{one}\b(?!'s)",
        )
    )


def confirming(verbs: str) -> str:
    """The question whether something is really to be done.

    Args:
        verbs: What is to be done, as alternatives of a regular expression that fit its forms too: ``delet(?:e|ed|ing|ion)``.
    """
    act = rf"(?:{verbs}|do (?:it|that|this|so)|proceed\w*|go ahead|go on|go through with|continue|carry on)"
    granted = r"(?:ok|okay|fine|all right|alright|safe|permission|approval|consent|blessing|go-ahead|agree|approve|mind)"
    asked = r"(?! (?:which|what|where|who|when|how|why))"
    return "|".join(
        (
            rf"{_CLAUSE}(?:shall|should|may|can|could|must|do|will) (?:i|we) {_SOME}{act}\b",
            rf"{_CLAUSE}(?:shall|should|may|can|could|must|is|are) (?:it|this|that|these|the|your) {_SOME}{_SOME}(?:{verbs})\b",
            rf"{_CLAUSE}(?:do|did|would|are|will) you\b[^?]{{0,60}}\b{act}\b",
            rf"{_CLAUSE}(?:do|did|would) you {_SOME}(?:want|wish|mean|like) (?:this|that|it)\b(?: (?:done|now|gone))?\?",
            rf"{_CLAUSE}you {_SOME}(?:want|wish|would like|mean|asked)\b[^?]{{0,50}}\b{act}\b[^?]{{0,60}}\?",
            rf"\byou(?:'re| are)? {_SOME}(?:sure|certain|positive|serious)\b{asked}",
            rf"(?:^|[^\w' ] ?)(?:{_SOME})(?:sure|certain|really)\?",
            rf"\b(?:really|truly|definitely|actually) (?:want|wish|mean|like|need|intend|{act})\b",
            rf"\bconfirm(?:ed|ation)?\b{asked}",
            r"\bis (?:that|this|it) (?:really |truly |still )?what you\b",
            r"\bis (?:that|this|it) (?:\w+ )?(?:ok|okay|fine|all right|alright|right|correct)(?: (?:with|by|for) you)?\?",
            rf"\b{granted}\b.{{0,30}}\b{act}\b",
            r"(?:^|[^\w' ] ?)(?:ok|okay|all right|alright|agreed|yes or no)\?",
            rf"^(?:so )?(?:{act})\b[^?]{{0,40}}\?",
            r"\bchanged? your mind\b",
        )
    )
