"""Programs of ours that run beside an agent's code, in its process: they are sent as text, and import nothing of this package.

A system's Python runs them, so they keep to what Python 3.9 knows. What they answer is data like all else from there.
"""

from importlib.resources import files

__all__ = ["driver"]


def driver(name: str) -> str:
    """The text of one."""
    return files(__name__).joinpath(f"{name}.py").read_text(encoding="utf-8")
