"""The one HTML kit: a template and what it shows become one file that needs nothing else.

Whatever an agent, a tool or a task wrote is hostile: every value is escaped, the page's own policy (CSP) forbids scripts and any
address, and characters that could hide or turn round text are shown as ``\N{REPLACEMENT CHARACTER}``. A page has no clock and no
randomness of its own, so equal input gives equal bytes.
"""

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from agent_gym.report import figures

__all__ = ["render", "stylesheet", "write"]

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: getattr(figures, name) for name in figures.__all__})
    return environment


def render(template: str, **shown: Any) -> str:
    """Renders a page.

    Args:
        template: Name of a file in ``templates``.
        **shown: What the template refers to. Only `markupsafe.Markup`, which charts are, is not escaped.

    Returns:
        HTML without characters that UTF-8 cannot hold or that could disguise text.
    """
    return figures.visible(_environment().get_template(template).render(**shown))


def stylesheet() -> str:
    """The style that all pages share; its first two rules for ``:root`` are the colours of the light and of the dark scheme."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")


def write(path: Path, page: str) -> Path:
    """Writes a page whole or not at all, and makes the folders above it.

    Returns:
        The path, absolute.

    Raises:
        OSError: It cannot be written.
    """
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(page.encode())
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path
