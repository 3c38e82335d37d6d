"""What a worker process does: reads asks from its socket and writes answers, until it is told to close or nobody is there."""

import io
import os
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
    own = os.getpid()
    _seed_globals(int.from_bytes(os.urandom(8)))
    worker = Worker(slot, before_reset=_seed_globals)
    while channel.open and not worker.closed:
        for message in channel.receive():
            answer = _answer(worker, message)
            if os.getpid() != own:  # the environment has forked, and this is the child: the answer is its parent's
                os._exit(0)
            channel.send(_encode_answer(answer))
    if not worker.closed:
        worker.handle(Ask(-1, "close", None))


def encode_ask(ask: Ask) -> bytes:
    """An ask as bytes.

    Raises:
        TypeError: It holds something that cannot be pickled.
    """
    try:
        payload = pickle.dumps(ask.payload, protocol=5) if ask.kind in ("reset", "step", "close") else b"__main__"
        if b"__main__" in payload:  # the user's script, which the worker does not import: cloudpickle takes along what stands in it
            payload = cloudpickle.dumps(ask.payload, protocol=5)
        return pickle.dumps((ask.id, ask.kind), protocol=5) + payload
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
        return _failed(
            Answer(ask.id, slot, ask.kind, None), f"what {ask.kind} answered cannot be unpickled: {type(error).__name__}: {error}"
        )


def _answer(worker: Worker, message: bytes) -> Answer:
    file = io.BytesIO(message)
    ask_id, kind = pickle.load(file)
    try:
        payload = pickle.load(file)
    except Exception as error:  # noqa: BLE001 - the same
        return _failed(
            Answer(ask_id, worker.slot, kind, None), f"what {kind} was given cannot be unpickled: {type(error).__name__}: {error}"
        )
    return worker.handle(Ask(ask_id, kind, payload))


def _encode_answer(answer: Answer) -> bytes:
    why = ""
    for dumps in (pickle.dumps, cloudpickle.dumps):  # the second for classes that came with the user's script
        try:
            return bytes(dumps(tuple(answer), protocol=5))
        except Exception as error:  # noqa: BLE001 - pickling runs code of whatever it meets
            why = f"what {answer.kind} answered cannot be pickled: {type(error).__name__}: {error}"
    return pickle.dumps(tuple(_failed(answer, why)), protocol=5)


def _failed(answer: Answer, why: str) -> Answer:
    return answer._replace(value=TypeError(why) if answer.kind == "call" else None, error=f"{why}\n{answer.error}".strip())


def _seed_globals(seed: int) -> None:
    """Seeds the global generators: environments that draw from them would else all draw the same, being forks of one process."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: TID251 - the same
