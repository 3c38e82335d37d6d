"""The fault-aware way to follow a script: through failures, garbled and partial answers, and writes that may or may not have happened.

It keeps to five habits, and to nothing that it knows of faults beyond what is observed:

- What failed is called again, after waiting for as long as the answer said, and longer each time if too much fails in a row.
- A write is believed when a read of what it changes shows something else than before it, whatever the write itself answered.
- A write that may have happened is made again only after two looks at what it changes, for one look may show what was long ago.
- What was refused, and what two looks show not to have happened by an earlier try, is refused.
- If what a script looks for is in none of the answers, one of them was incomplete: ask again.

So it may look at a record twice, and tells a script of its write what the look after it showed. A script that it follows must come to
the same wishes before and after its own writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_gym.core import ToolCall
from agent_gym.core.canonical import dumps
from agent_gym.world.scripts import ANSWERED, REFUSED, Result, Script, refusal

__all__ = ["careful_call"]

_NOT_DONE = frozenset({"rate_limited", "unavailable"})
_TRANSIENT = _NOT_DONE | {"timeout", "outcome_unknown", "malformed"}
_PATIENCE = 3
"""Failures in a row after which it is time to wait, also if nobody said so."""
_LOOKS = 2
_MOST_TRIES = 6
"""Tries of one write; then somebody else has to see to it."""
_WAIT = "wait"
_GIVE_UP = ToolCall("hand_over", {"reason": "beyond_the_tools"})

Last = Mapping[str, Any]


def careful_call(
    script: Script, observations: Sequence[Mapping[str, Any]], verified_by: Mapping[str, str], waits: Sequence[float] = ()
) -> ToolCall:
    """The next call of somebody who wants what the script wants, and trusts no answer more than it deserves.

    Args:
        script: A fresh generator.
        observations: The rich observations so far, oldest first.
        verified_by: By write, the read that shows what it changes (see `WorldKind`).
        waits: The seconds that the tool ``wait`` takes, ascending; none where there is no such tool.
    """
    history = [last for observation in observations if (last := observation["data"]["last"]) is not None]
    try:
        return _pause(history, waits) or _Memory(history, verified_by).next_call(script)
    finally:
        script.close()


def _pause(history: Sequence[Last], waits: Sequence[float]) -> ToolCall | None:
    """The wait that is due before any other call."""
    failures, pauses, waited, due = 0, 0, 0, None
    for last in history:
        if last["tool"] == _WAIT:
            if last["status"] == "ok":
                failures, pauses, waited = 0, pauses + 1, waited + last["arguments"]["seconds"]
        elif last["status"] in _TRANSIENT:
            failures, waited, due = failures + 1, 0, last.get("retry_after_s")
        else:
            failures, pauses, due = 0, 0, None
    if due is None and failures >= _PATIENCE and waits:
        due = waits[min(pauses, len(waits) - 1)]
    left = (due or 0) - waited
    return ToolCall(_WAIT, {"seconds": next((wait for wait in waits if wait >= left), waits[-1])}) if waits and left > 0 else None


@dataclass
class _Write:
    """A write that was tried.

    Attributes:
        look: The read that shows what it changes; None where nothing was read before it, so that its own answer must do.
        before: What that showed before the first try.
        statuses: What each try that may have done something was answered.
        looks: How often somebody has looked since the last of them.
        done: Whether it has happened.
        after: The record that first showed so.
        said: What the last of them was answered.
    """

    look: ToolCall | None
    before: Result
    statuses: list[str] = field(default_factory=list)
    looks: int = 0
    done: bool = False
    after: Result = field(default_factory=dict)
    said: Any = ""

    @property
    def refused(self) -> bool:
        """Whether the last try was refused, and not because of an earlier one: of which many looks would have shown something."""
        enough = _LOOKS if REFUSED.issuperset(self.statuses) else 2 * _LOOKS
        return bool(self.statuses) and self.statuses[-1] in REFUSED and (self.look is None or self.looks >= enough)

    def next_call(self, call: ToolCall) -> ToolCall:
        """The look that is due, or the write itself."""
        refused = self.statuses[-1:] == ["conflict"]
        happened = refused and set(self.statuses) != {"conflict"}  # an earlier try is what this one was in conflict with
        if self.look is not None and self.statuses and (happened or self.looks < _LOOKS):
            return self.look
        return call if len(self.statuses) < _MOST_TRIES else _GIVE_UP


class _Memory:
    """What has been learned of records and writes.

    Args:
        history: Every call and its result, oldest first.
        verified_by: By write, the read that shows what it changes.
    """

    def __init__(self, history: Sequence[Last], verified_by: Mapping[str, str]) -> None:
        self._verified_by = verified_by
        self._answers: dict[ToolCall, Result] = {}
        self._refused: dict[ToolCall, Result] = {}
        self._asked: dict[ToolCall, int] = {}
        self._writes: dict[ToolCall, _Write] = {}
        for last in history:
            call = ToolCall(last["tool"], last["arguments"])
            if call.name in verified_by:
                self._tried(call, last)
            elif last["status"] in ANSWERED:
                self._read(call, last["result"])
            elif last["status"] in REFUSED:
                self._refused.setdefault(call, refusal(last["status"], last["result"]))

    def _read(self, call: ToolCall, answer: Result) -> None:
        for write in self._writes.values():
            if write.look == call:
                write.looks += 1
                if not write.done and _differ(write.before, answer):
                    write.done, write.after = True, answer
        known = self._answers.get(call)
        if known is None or _differ(known, answer) or len(dumps(known)) <= len(dumps(answer)):
            self._answers[call] = answer  # else the same again, with a part of it missing
        self._asked[call] = self._asked.get(call, 0) + 1

    def _tried(self, call: ToolCall, last: Last) -> None:
        status = last["status"]
        if status in _NOT_DONE:
            return
        if call not in self._writes:
            look = self._look(call)
            self._writes[call] = _Write(look, {} if look is None else self._answers[look])
        write = self._writes[call]
        write.statuses.append(status)
        write.said = last["result"]
        write.looks = 0
        write.done |= write.look is None and status in ANSWERED

    def _look(self, call: ToolCall) -> ToolCall | None:
        """The newest read that shows what a write changes and speaks of the same as it does."""
        given = call.arguments
        reads = (read for read in reversed(self._answers) if read.name == self._verified_by[call.name])
        return next((read for read in reads if all(given.get(key, value) == value for key, value in read.arguments.items())), None)

    def next_call(self, script: Script) -> ToolCall:
        """The first call that the script wants and that is still to be made, or made again, or looked after."""
        sources: list[ToolCall] = []
        try:
            wanted = next(script)
            while True:
                if "" in wanted.arguments.values() and sources:
                    # Of the answers that led here, the newest of those that were asked for least often.
                    return min(reversed(sources), key=self._asked.__getitem__)
                if wanted.name in self._verified_by:
                    write = self._writes.get(wanted, _Write(None, {}))
                    if not (write.done or write.refused):
                        return write.next_call(wanted)
                    wanted = script.send(write.after if write.done else refusal(write.statuses[-1], write.said))
                elif wanted in self._answers:
                    answer = self._answers[wanted]
                    if any(isinstance(part, list) for part in answer.values()):  # such an answer can be incomplete
                        sources.append(wanted)
                    wanted = script.send(answer)
                elif wanted in self._refused:
                    wanted = script.send(self._refused[wanted])
                else:
                    return wanted
        except StopIteration:
            return ToolCall("finish")


def _differ(before: Any, after: Any) -> bool:
    """Whether two answers contradict each other. One of which a part is missing contradicts nothing by that."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return any(_differ(value, after[name]) for name, value in before.items() if name in after)
    if isinstance(before, list) and isinstance(after, list):
        return any(map(_differ, before, after))
    return bool(before != after)
