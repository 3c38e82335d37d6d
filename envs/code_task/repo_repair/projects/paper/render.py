"""Whole texts."""

from __future__ import annotations

from agent_gym.envs.code_task.repo_repair.projects.paper import blocks as parts
from agent_gym.envs.code_task.repo_repair.projects.paper import inline
from agent_gym.envs.code_task.repo_repair.projects.paper.wrap import center, wrap


def text(source: str, width: int = 40) -> str:
    """As plain text, with an empty line between blocks that are no list."""
    lines: list[str] = []
    before = ""
    for kind, number, body in parts.blocks(source):
        if before and not (kind == before and kind in ("item", "step")):
            lines.append("")
        before = kind
        plain = inline.to_text(body)
        if kind == "heading":
            lines += [center(plain.upper(), width)] if number == 1 else [plain, "-" * len(plain)]
        elif kind == "rule":
            lines.append("-" * width)
        elif kind == "item":
            indent = "  " * number
            lines += wrap(plain, width, f"{indent}* ", f"{indent}  ")
        elif kind == "step":
            lines += wrap(plain, width, f"{number}. ", " " * (len(str(number)) + 2))
        elif kind == "quote":
            lines += wrap(plain, width, "| ", "| ")
        else:
            lines += wrap(plain, width)
    return "\n".join(lines)


def html(source: str) -> str:
    """As HTML, one block a line."""
    lines: list[str] = []
    inside = ""
    for kind, number, body in parts.blocks(source):
        wanted = {"item": "ul", "step": "ol"}.get(kind, "")
        if inside and inside != wanted:
            lines.append(f"</{inside}>")
        if wanted and inside != wanted:
            lines.append(f"<{wanted}>")
        inside = wanted
        name = {"heading": f"h{number}", "item": "li", "step": "li", "quote": "blockquote", "paragraph": "p"}.get(kind, "")
        lines.append(f"<{name}>{inline.to_html(body)}</{name}>" if name else "<hr>")
    if inside:
        lines.append(f"</{inside}>")
    return "\n".join(lines)


def contents(source: str) -> list[str]:
    """The headings, numbered."""
    counts: list[int] = []
    found = []
    for kind, level, body in parts.blocks(source):
        if kind == "heading":
            counts = counts[:level] + [0] * (level - len(counts))
            counts[level - 1] += 1
            found.append(f"{'.'.join(map(str, counts))} {inline.to_text(body)}")
    return found
