"""Environments in which something outlives its episode: one for each place where that has been seen, to try a leak check on.

Each is a real environment of the tool, web or code domain with one planted fault, and says in ``channel`` what a check must name.
``agent_gym.factory.make(env="agent_gym.testing.leaky:KeptRow", interface="text")`` makes one.
"""

import os
import shutil
import tempfile
import threading
from abc import abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from agent_gym.agent_env import AgentEnv
from agent_gym.core import Observation, Session, Snapshot, Task, ToolCall, ToolResult
from agent_gym.envs.code_task import CodeTask
from agent_gym.envs.tool_task import ToolTask
from agent_gym.envs.web_task import WebTask
from agent_gym.sandbox import default_pool

__all__ = ["LEAKY", "Leaky"]

_SEEN: list[str] = []
_TEMPLATES: dict[str, str] = {}


class Leaky(AgentEnv):
    """What they share: `_plant` is called with every session before anybody sees it.

    Attributes:
        channel: What the leak is to be named; the rest of the name may be finer.
        used: Whether there has been an episode before.
        held: Freed when the environment is closed, so that nothing stays for good.
    """

    channel: ClassVar[str]

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.used = False
        self.held = ExitStack()

    @abstractmethod
    def _plant(self, session: Any) -> None:
        """Does what a reset should not."""

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:
        """A session with the fault in it."""
        session = super().open(task, seed, snapshot)  # type: ignore[safe-super]
        self._plant(session)
        self.used = True
        return session

    def close(self) -> None:
        """Frees everything, what was left behind included."""
        super().close()
        self.held.close()


class _LeakyTool(Leaky, ToolTask):
    def __init__(self, **keywords: Any) -> None:
        super().__init__(**{"worlds": ["retail"], **keywords})


class _LeakyWeb(Leaky, WebTask):
    def __init__(self, **keywords: Any) -> None:
        super().__init__(**{"worlds": ["retail"], **keywords})


class _LeakyCode(Leaky, CodeTask):
    pass


class ClassAttribute(_LeakyTool):
    """Counts its episodes in the class."""

    channel = "globals.agent_gym.testing.leaky.ClassAttribute.episodes"
    episodes: ClassVar[int] = 0

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        type(self).episodes += 1


class ModuleVariable(_LeakyTool):
    """Notes its tasks in a variable of the module."""

    channel = "globals.agent_gym.testing.leaky._SEEN"

    def _plant(self, session: Any) -> None:
        _SEEN.append(session._task.id)


class KeptRow(_LeakyTool):
    """A row of the database is as the episode before left it."""

    channel = "changes.users/"

    def _plant(self, session: Any) -> None:
        if self.used:
            user = session.world.query("SELECT min(user_id) AS user_id FROM users")[0]["user_id"]
            with session.world.transaction():
                session.world.update("users", user, name="Somebody Else")


class Clock(_LeakyTool):
    """The clock goes on."""

    channel = "probes.clock"

    def _plant(self, session: Any) -> None:
        if self.used:
            with session.world.transaction():
                session.world.advance(60)


class ToolCache(_LeakyTool):
    """Answers of tools are kept for the next episode."""

    channel = "probes.tool_cache"

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._answers: dict[str, ToolResult] = {}

    def _plant(self, session: Any) -> None:
        call, probes, answers = session.call, session.probes, self._answers

        def answer(each: ToolCall, *rest: Any) -> ToolResult:
            answers[str(each)] = answers.get(str(each)) or call(each, *rest)
            return answers[str(each)]

        session.call = answer
        session.probes = lambda: {**probes(), "tool_cache": sorted(answers)}


class GlobalGenerator(_LeakyTool):
    """Draws from the generator that everybody shares."""

    channel = "numpy.random"

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        np.random.random()


class EnvironmentVariable(_LeakyTool):
    """Sets a variable of the process."""

    channel = "env.AGENT_GYM_PLANTED"

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        os.environ["AGENT_GYM_PLANTED"] = "1"


class Cookie(_LeakyWeb):
    """The browser is still signed in."""

    channel = "probes.browser.cookies"

    def _plant(self, session: Any) -> None:
        if self.used:
            session._page._site._client.set_cookie("seen", "yes", domain="retail.example")


class History(_LeakyWeb):
    """The tab remembers a page of the episode before."""

    channel = "probes.browser.history"

    def _plant(self, session: Any) -> None:
        if self.used:
            tab = session._page._tab
            tab.entries.insert(0, tab.entries[-1])
            tab.at += 1


class CachedPage(_LeakyWeb):
    """The first page shown is the last one of the episode before."""

    channel = "observation."

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._page = Observation("")

    def _plant(self, session: Any) -> None:
        observe, kept = session.observe, [self._page] if self.used else []

        def observed() -> Observation:
            self._page = kept.pop() if kept else observe()
            return self._page

        session.observe = observed


class TemplateCache(_LeakyWeb):
    """A cached template has the first task's name in it, until every cache is emptied."""

    channel = "caches.observation.text"

    def _plant(self, session: Any) -> None:
        observe, words = session.observe, _TEMPLATES.setdefault("desk", f"The desk, for: {session._task.goal}")
        session.observe = lambda: replace(observe(), text=words)

    def clear_caches(self) -> None:
        """Forgets the template too."""
        super().clear_caches()
        _TEMPLATES.clear()


class OpenFile(_LeakyWeb):
    """A file stays open."""

    channel = "fds"

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        self.held.callback(os.close, os.open(os.devnull, os.O_RDONLY))


class Thread(_LeakyWeb):
    """A thread goes on waiting."""

    channel = "threads"

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        stop = threading.Event()
        threading.Thread(target=stop.wait, daemon=True).start()
        self.held.callback(stop.set)


class WorkspaceFile(_LeakyCode):
    """A file of the episode before is still there."""

    channel = "changes.files/notes.txt"

    def _plant(self, session: Any) -> None:
        if self.used:
            session._sandbox.write_file("notes.txt", "from the episode before")


class SandboxProcess(_LeakyCode):
    """A sandbox goes on running what was started in it."""

    channel = "children"

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        sandbox = self.held.enter_context(default_pool().acquire())
        sandbox.run(["bash", "-c", "sleep 1000 &"], background=True)


class TemporaryFolder(_LeakyCode):
    """A folder stays among the temporary ones."""

    channel = "temp"

    def _plant(self, session: Any) -> None:  # noqa: ARG002
        self.held.callback(shutil.rmtree, tempfile.mkdtemp())


LEAKY: tuple[type[Leaky], ...] = (
    ClassAttribute,
    ModuleVariable,
    KeptRow,
    Clock,
    ToolCache,
    GlobalGenerator,
    EnvironmentVariable,
    Cookie,
    History,
    CachedPage,
    TemplateCache,
    OpenFile,
    Thread,
    WorkspaceFile,
    SandboxProcess,
    TemporaryFolder,
)
"""All sixteen."""
