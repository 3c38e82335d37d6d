"""What a worker process does: reads asks from its socket and writes answers, until it is told to close or nobody is there."""

import pickle
import random  # noqa: TID251 - only to seed it, for environments that draw from it

import cloudpickle
import numpy as np

from agent_gym.runner.backends.channel import Channel
from agent_gym.runner.messages import Answer, Ask
from agent_gym.runner.worker import Worker

__all__ = ["decode_answer", "encode_ask", "serve"]


def serve(slot: int, channel: Channel) -> None:
    """Answers asks.

    Args:
        slot: The slot.
        channel: A blocking one.
    """
    worker = Worker(slot, before_reset=_seed_globals)
    while channel.open and not worker.closed:
        for message in channel.receive():
            ask = _decode_ask(message)
            channel.send(_encode_answer(worker.handle(ask)))
    if not worker.closed:
        worker.handle(Ask(-1, "close", None))


def encode_ask(ask: Ask) -> bytes:
    """An ask as bytes.

    Raises:
        TypeError: It holds something that cannot be pickled.
    """
    # What is given as code may stand in the user's script, which the worker does not import: cloudpickle takes it along.
    dumps = pickle.dumps if ask.kind in ("reset", "step", "close") else cloudpickle.dumps
    try:
        return bytes(dumps(tuple(ask), protocol=5))
    except Exception as error:  # pickling runs code of whatever it meets
        raise TypeError(f"{ask.kind}: a worker process can only be given what can be pickled: {type(error).__name__}: {error}") from error


def decode_answer(message: bytes, slot: int, ask: Ask) -> Answer:
    """An answer from bytes; one that cannot be read becomes an answer that says so.

    Args:
        message: The bytes.
        slot: The slot it comes from.
        ask: What the worker was asked last.
    """
    try:
        return Answer(*pickle.loads(message))
    except Exception as error:  # noqa: BLE001 - unpickling runs code of whatever it meets
        return _unreadable(Answer(ask.id, slot, ask.kind, None), f"cannot be unpickled: {type(error).__name__}: {error}")


def _decode_ask(message: bytes) -> Ask:
    ask_id, kind, payload = pickle.loads(message)
    return Ask(ask_id, kind, payload)


def _encode_answer(answer: Answer) -> bytes:
    why = ""
    for dumps in (pickle.dumps, cloudpickle.dumps):  # the second for classes that came with the user's script
        try:
            return bytes(dumps(tuple(answer), protocol=5))
        except Exception as error:  # noqa: BLE001 - pickling runs code of whatever it meets
            why = f"cannot be pickled: {type(error).__name__}: {error}"
    return pickle.dumps(tuple(_unreadable(answer, why)), protocol=5)


def _unreadable(answer: Answer, why: str) -> Answer:
    text = f"what {answer.kind} answered {why}"
    return answer._replace(value=TypeError(text) if answer.kind == "call" else None, error=f"{text}\n{answer.error}".strip())


def _seed_globals(seed: int) -> None:
    """Seeds the global generators: environments that draw from them would else all draw the same, being forks of one process."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: TID251 - the same
