"""Sets of half-open spans ``(start, end)`` of whole numbers."""

from __future__ import annotations

Spans = list[tuple[int, int]]


def merge(spans: Spans) -> Spans:
    """Sorted, with those that touch or overlap made one; empty ones fall away."""
    merged: Spans = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def subtract(spans: Spans, taken: Spans) -> Spans:
    """What is left of some when others are taken away."""
    left: Spans = []
    gone = merge(taken)
    for start, end in merge(spans):
        at = start
        for first, last in gone:
            if last <= at or first >= end:
                continue
            if first > at:
                left.append((at, first))
            at = last
        if at < end:
            left.append((at, end))
    return left


def common(one: Spans, other: Spans) -> Spans:
    """What is in both."""
    found: Spans = []
    for start, end in merge(one):
        for first, last in merge(other):
            low, high = max(start, first), min(end, last)
            if low < high:
                found.append((low, high))
    return found


def length(spans: Spans) -> int:
    """How long they are together."""
    return sum(end - start for start, end in merge(spans))
