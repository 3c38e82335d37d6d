"""Commands as lines, to be written down and done again."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.kv.errors import StoreError
from agent_gym.envs.code_task.repo_repair.projects.kv.store import Store


def split(line: str) -> list[str]:
    """The words of a line; one in double quotes may hold spaces, and a backslash takes a meaning away."""
    words: list[str] = []
    word = ""
    quoted = False
    begun = False
    at = 0
    while at < len(line):
        char = line[at]
        if char == "\\" and at + 1 < len(line):
            word += line[at + 1]
            begun = True
            at += 1
        elif char == '"':
            quoted = not quoted
            begun = True
        elif char == " " and not quoted:
            if begun:
                words.append(word)
            word, begun = "", False
        else:
            word += char
            begun = True
        at += 1
    if quoted:
        raise StoreError("quote")
    if begun:
        words.append(word)
    return words


def join(words: list[str]) -> str:
    """The line of some words."""
    made = []
    for word in words:
        inner = word.replace("\\", "\\\\").replace('"', '\\"')
        made.append(f'"{inner}"' if " " in word or not word else inner)
    return " ".join(made)


def run(store: Store, line: str) -> str:
    """Does what a line says; gives the answer as text."""
    words = split(line)
    name, rest = words[0].upper() if words else "", words[1:]
    if name == "SET" and len(rest) in (2, 3):
        store.set(rest[0], rest[1], int(rest[2]) if len(rest) == 3 else 0)
        return "OK"
    if name == "GET" and len(rest) == 1:
        return str(store.get(rest[0], "(nil)"))
    if name == "DEL" and rest:
        return str(sum(store.delete(key) for key in rest))
    if name == "KEYS" and len(rest) <= 1:
        return join(store.names(*rest))
    if name == "COUNT" and len(rest) == 1:
        values = [store.get(key) for key in store.names()]
        return str(values.count(rest[0]))
    if name in ("BEGIN", "COMMIT", "ROLLBACK") and not rest:
        return str(getattr(store, name.lower())())
    raise StoreError(line)


def replay(lines: list[str]) -> dict[str, str]:
    """What a store holds after some lines; one that fails changes nothing."""
    store = Store()
    for line in lines:
        try:
            run(store, line)
        except StoreError:
            continue
    return {key: store.get(key) for key in store.names()}
