"""What was downloaded in an episode, in memory, under names that no file system has to be asked about."""

import re
from typing import TYPE_CHECKING

from agent_gym.browser.page import Blocked

if TYPE_CHECKING:
    from agent_gym.browser.inprocess.site import Response

__all__ = ["Downloads"]

_MOST = 20


class Downloads(dict[str, bytes]):
    """What was downloaded, by the name it was saved under."""

    def add(self, response: "Response", name: str) -> None:
        """Saves an answer.

        Args:
            response: The answer.
            name: The name it wants to have; empty for that in its URL.

        Raises:
            Blocked: It is an error, too large, or one too many.
        """
        if response.status >= 400 or response.too_large or len(self) >= _MOST:
            why = f"status {response.status}" if response.status >= 400 else "too large" if response.too_large else "too many downloads"
            raise Blocked(f"the file cannot be downloaded: {why}")
        path = response.url.partition("#")[0].partition("?")[0]
        name = "".join(filter(str.isprintable, re.split(r"[/\\]", name or path)[-1]))[:100].strip(". ") or "download"
        stem, dot, ending = name.rpartition(".")
        number = 0
        while name in self:
            number += 1
            name = f"{stem} ({number}).{ending}" if dot else f"{ending} ({number})"
        self[name] = response.body
