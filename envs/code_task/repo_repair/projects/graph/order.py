"""What comes first, and what hangs together."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.graph.build import Graph, GraphError, reverse


def layers(graph: Graph) -> list[list[str]]:
    """Nodes by when they can be done, if an edge means that its start comes first; a circle is an error."""
    waiting = {node: len(edges) for node, edges in reverse(graph).items()}
    found: list[list[str]] = []
    done = 0
    ready = sorted(node for node, count in waiting.items() if count == 0)
    while ready:
        found.append(ready)
        done += len(ready)
        later = []
        for node in ready:
            for other in graph[node]:
                waiting[other] -= 1
                if waiting[other] == 0:
                    later.append(other)
        ready = sorted(later)
    if done < len(graph):
        raise GraphError("circle")
    return found


def components(graph: Graph) -> list[list[str]]:
    """The parts of a graph between which there is no edge, the largest first, then by name."""
    back = reverse(graph)
    seen: set[str] = set()
    found = []
    for start in sorted(graph):
        if start in seen:
            continue
        part = []
        stack = [start]
        seen.add(start)
        while stack:
            node = stack.pop()
            part.append(node)
            for other in [*graph[node], *back[node]]:
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        found.append(sorted(part))
    return sorted(found, key=lambda part: (-len(part), part))


def critical(graph: Graph) -> int:
    """The largest weight of a way, if there is no circle."""
    best = dict.fromkeys(graph, 0)
    for layer in layers(graph):
        for node in layer:
            for other, weight in graph[node].items():
                best[other] = max(best[other], best[node] + weight)
    return max(best.values(), default=0)
