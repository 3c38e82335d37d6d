"""Which browser is started, and what to do where there is none."""

import os
import shutil
from pathlib import Path

from agent_gym.errors import InfrastructureError, MissingExtra

__all__ = ["available", "executable"]

_VARIABLE = "AGENT_GYM_CHROMIUM"
_NAMES = ("chromium-headless-shell", "chromium")


def executable() -> str:
    """The path of the browser: what ``AGENT_GYM_CHROMIUM`` names, else Playwright's own, else the system's.

    Raises:
        InfrastructureError: There is none, or the variable names no program.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise InfrastructureError(f"{_VARIABLE} is {named!r}, which is no program that can be run")
        return found
    found = _own() or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise InfrastructureError(
            "no Chromium was found; get one with 'apt-get install chromium-headless-shell' or "
            f"'playwright install chromium-headless-shell', or name one in {_VARIABLE}"
        )
    return found


def available() -> Exception | None:
    """What keeps this engine from running here, as the error it would raise; None if nothing is missing."""
    try:
        import playwright.async_api  # noqa: F401 - the extra may be missing
    except ImportError:
        return MissingExtra("playwright", "browser")
    try:
        executable()
    except InfrastructureError as error:
        return error
    return None


def _own() -> str | None:
    """Playwright's own headless shell of any version, as ``playwright install`` lays it down."""
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    return next(map(str, sorted(folder.glob("chromium_headless_shell-*/*/*headless*shell"), reverse=True)), None)
