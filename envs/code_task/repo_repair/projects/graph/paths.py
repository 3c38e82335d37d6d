"""Ways through a graph."""

from __future__ import annotations

import heapq

from agent_gym.envs.code_task.repo_repair.projects.graph.build import Graph, GraphError


def hops(graph: Graph, start: str) -> dict[str, int]:
    """The least number of edges to each node that can be reached."""
    if start not in graph:
        raise GraphError(start)
    found = {start: 0}
    front = [start]
    while front:
        later = []
        for node in front:
            for other in graph[node]:
                if other not in found:
                    found[other] = found[node] + 1
                    later.append(other)
        front = later
    return found


def shortest(graph: Graph, start: str, goal: str) -> tuple[int, list[str]]:
    """The least weight of a way, and the way; of equals the one that comes first in the alphabet.

    Raises:
        GraphError: There is none, or an edge weighs less than nothing.
    """
    if start not in graph or goal not in graph:
        raise GraphError(f"{start} {goal}")
    queue: list[tuple[int, list[str]]] = [(0, [start])]
    done: set[str] = set()
    while queue:
        weight, way = heapq.heappop(queue)
        node = way[-1]
        if node == goal:
            return weight, way
        if node in done:
            continue
        done.add(node)
        for other, more in graph[node].items():
            if more < 0:
                raise GraphError("weight")
            if other not in done:
                heapq.heappush(queue, (weight + more, [*way, other]))
    raise GraphError(f"{start} {goal}")


def all_ways(graph: Graph, start: str, goal: str, most: int) -> list[list[str]]:
    """Every way of at most so many edges that meets no node twice, sorted."""
    found: list[list[str]] = []

    def walk(way: list[str]) -> None:
        if way[-1] == goal:
            found.append(way)
            return
        if len(way) <= most:
            for other in sorted(graph[way[-1]]):
                if other not in way:
                    walk([*way, other])

    walk([start])
    return sorted(found)
