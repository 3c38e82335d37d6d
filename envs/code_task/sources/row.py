"""One row of a file, and reading its fields so that what does not fit is named with its place."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_gym.core.canonical import plain
from agent_gym.envs.code_task.sources.reading import parse
from agent_gym.errors import DatasetError
from agent_gym.sandbox import CodecError, Limits
from agent_gym.sandbox.codec import dumps
from agent_gym.sandbox.limits import check_files

__all__ = ["Row"]

_MAX_ID = 200
_MAX_SHOWN = 200


@dataclass(frozen=True)
class Row:
    """A row. Its methods raise `DatasetError` where a field is missing or does not fit.

    Attributes:
        where: File and line.
        fields: What stands there.
    """

    where: str
    fields: Mapping[str, Any]

    def bad(self, why: object) -> DatasetError:
        """The error for this row."""
        return DatasetError(f"{self.where}: {why}")

    def text(self, name: str, default: str | None = None) -> str:
        """A text that can be written into a file: it has neither NUL characters nor lone surrogates."""
        if default is not None and self.fields.get(name) is None:
            return default
        if name not in self.fields:
            raise self.bad(f"field {name!r} is missing")
        return self._sound(self.fields[name], f"field {name!r}")

    def texts(self, name: str, default: Iterable[str] | None = None) -> list[str]:
        """A list of such texts; it may be JSON in a text."""
        if default is not None and self.fields.get(name) in (None, ""):
            return list(default)
        value = self.json(name)
        if not isinstance(value, list):
            raise self.bad(f"field {name!r} is {type(value).__name__} instead of a list")
        return [self._sound(part, f"field {name!r}, item {number}") for number, part in enumerate(value, 1)]

    def files(self, name: str) -> dict[str, str]:
        """Texts by path, which fit into a workspace."""
        value = self.json(name)
        if not isinstance(value, dict):
            raise self.bad(f"field {name!r} is {type(value).__name__} instead of texts by path")
        found = {path: self._sound(content, f"field {name!r}, {path!r}"[:_MAX_SHOWN]) for path, content in value.items()}
        try:
            check_files({path: content.encode() for path, content in found.items()}, Limits())
        except ValueError as error:
            raise self.bad(f"field {name!r}: {error}") from None
        return found

    def json(self, name: str) -> Any:
        """A value, which may be JSON in a text."""
        if name not in self.fields:
            raise self.bad(f"field {name!r} is missing")
        value = self.fields[name]
        return parse(value, f"{self.where}: field {name!r}") if isinstance(value, str) else value

    def id(self, name: str, prefix: str = "") -> str:
        """A problem's id; ``prefix`` stands before a number."""
        value = self.fields.get(name)
        value = f"{prefix}{value}" if type(value) is int and abs(value) < 10**18 else value
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_ID or not value.isprintable() or value != value.strip():
            raise self.bad(f"field {name!r} is no id: printable text of at most {_MAX_ID} characters, or a number")
        return value

    def name(self, name: str) -> str:
        """The name of a function."""
        value = self.text(name).strip()
        if not value.isidentifier():
            raise self.bad(f"field {name!r} is {value[:_MAX_SHOWN]!r} instead of a function's name")
        return value

    def limits(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of `Limits`."""
        try:
            Limits(**wanted)
        except (TypeError, ValueError) as error:
            raise self.bad(f"limits: {error}") from None
        return dict(wanted)

    def sendable(self, value: Any, what: str) -> str:
        """A value as the sandbox's codec writes it, so that it is exact, and plain JSON all the same."""
        try:
            return dumps(value).decode()
        except CodecError as error:
            raise self.bad(f"{what} cannot be handed over: {error}") from None

    def rest(self, known: Iterable[str]) -> dict[str, Any]:
        """All other fields, as JSON values; what JSON cannot hold exactly is None."""
        read = set(known)
        return {_printable(name): _value(value) for name, value in self.fields.items() if name not in read}

    def _sound(self, value: Any, what: str) -> str:
        if not isinstance(value, str):
            raise self.bad(f"{what} is {type(value).__name__} instead of text")
        if _UNSOUND.search(value):
            raise self.bad(f"{what} has a NUL character or half a surrogate pair")
        return value


_UNSOUND = re.compile("[\0\ud800-\udfff]")


def _printable(name: Any) -> str:
    return str(name).encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> Any:
    try:
        return plain(value)
    except TypeError:
        return None
