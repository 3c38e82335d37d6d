"""Graphs as matrices."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.graph.build import Graph

Matrix = list[list[int]]


def adjacency(graph: Graph) -> Matrix:
    """1 where there is an edge; nodes in the order of the alphabet."""
    nodes = sorted(graph)
    return [[1 if other in graph[node] else 0 for other in nodes] for node in nodes]


def product(one: Matrix, other: Matrix) -> Matrix:
    """The product of two matrices."""
    if one and len(one[0]) != len(other):
        raise ValueError("shapes")
    columns = len(other[0]) if other else 0
    return [[sum(row[k] * other[k][column] for k in range(len(other))) for column in range(columns)] for row in one]


def power(matrix: Matrix, exponent: int) -> Matrix:
    """A matrix multiplied by itself so many times."""
    size = len(matrix)
    result = [[1 if row == column else 0 for column in range(size)] for row in range(size)]
    base = matrix
    while exponent > 0:
        if exponent % 2 == 1:
            result = product(result, base)
        base = product(base, base)
        exponent //= 2
    return result


def walks(graph: Graph, start: str, goal: str, length: int) -> int:
    """How many walks of so many edges there are."""
    nodes = sorted(graph)
    return power(adjacency(graph), length)[nodes.index(start)][nodes.index(goal)]


def closure(graph: Graph) -> Matrix:
    """1 where there is a way of any length above 0."""
    found = adjacency(graph)
    size = len(found)
    for middle in range(size):
        for row in range(size):
            for column in range(size):
                if found[row][middle] and found[middle][column]:
                    found[row][column] = 1
    return found
