"""Graphs from lines of text."""

from __future__ import annotations

Graph = dict[str, dict[str, int]]


class GraphError(ValueError):
    """No graph, or none that has what was asked for."""


def directed(text: str) -> Graph:
    """A graph from lines such as ``a -> b 3``; without a weight it is 1. The lighter of two such edges counts."""
    graph: Graph = {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) == 1:
            graph.setdefault(words[0], {})
            continue
        if len(words) not in (3, 4) or words[1] != "->":
            raise GraphError(line)
        weight = int(words[3]) if len(words) == 4 else 1
        edges = graph.setdefault(words[0], {})
        edges[words[2]] = min(weight, edges.get(words[2], weight))
        graph.setdefault(words[2], {})
    return graph


def undirected(text: str) -> Graph:
    """The same with each edge both ways."""
    graph = directed(text)
    both: Graph = {node: dict(edges) for node, edges in graph.items()}
    for node, edges in graph.items():
        for other, weight in edges.items():
            both[other][node] = min(weight, both[other].get(node, weight))
    return both


def reverse(graph: Graph) -> Graph:
    """With every edge the other way."""
    turned: Graph = {node: {} for node in graph}
    for node, edges in graph.items():
        for other, weight in edges.items():
            turned[other][node] = weight
    return turned
