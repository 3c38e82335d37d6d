"""Which word is in which text."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.search.words import terms


class Index:
    """Texts by name."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, list[int]]] = {}
        self.sizes: dict[str, int] = {}

    def add(self, name: str, text: str) -> int:
        """Adds a text, or puts it in the place of one; gives how many different terms it has."""
        self.remove(name)
        found = terms(text)
        self.sizes[name] = len(found)
        for place, term in found:
            self.places.setdefault(term, {}).setdefault(name, []).append(place)
        return len({term for _, term in found})

    def remove(self, name: str) -> bool:
        """Removes a text; tells whether it was there."""
        if name not in self.sizes:
            return False
        del self.sizes[name]
        for term in list(self.places):
            self.places[term].pop(name, None)
            if not self.places[term]:
                del self.places[term]
        return True

    def having(self, term: str) -> set[str]:
        """The texts that have a term; one that ends with ``*`` stands for all that begin so."""
        if term.endswith("*"):
            return {name for known, names in self.places.items() if known.startswith(term[:-1]) for name in names}
        return set(self.places.get(term, {}))

    def phrase(self, text: str) -> set[str]:
        """The texts that have some terms with the same distances between them."""
        wanted = terms(text)
        if not wanted:
            return set()
        first_place, first = wanted[0]
        found = set()
        for name, starts in self.places.get(first, {}).items():
            for start in starts:
                if all(start + place - first_place in self.places.get(term, {}).get(name, []) for place, term in wanted):
                    found.add(name)
        return found

    def count(self, term: str, name: str) -> int:
        """How often a text has a term."""
        return len(self.places.get(term, {}).get(name, []))
