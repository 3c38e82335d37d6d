"""Reads what the player types: a terminal with history and completion, or lines from a pipe."""

import codeop
import sys
import warnings
from collections.abc import Callable, Iterable

__all__ = ["Keyboard"]

_BETWEEN = " \t\n\"'`(){}[],:="
"""What ends a word that can be completed."""


class Keyboard:
    """A source of lines.

    Args:
        words: What the tab key completes, asked for anew each time.
    """

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self._is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if self._is_terminal:
            import readline  # merely importing it changes how input() behaves

            readline.set_completer_delims(_BETWEEN)
            readline.set_completer(lambda begun, index: dict(enumerate(sorted(w for w in set(words()) if w.startswith(begun)))).get(index))
            readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")

    def read(self, prompt: str) -> str:
        """One entry: a line, and as many more as it takes to close its brackets and triple quotes.

        Raises:
            EOFError: There is no more.
            KeyboardInterrupt: The player pressed Ctrl-C.
            UnicodeDecodeError: It is no text.
        """
        print()
        typed = self._line(prompt)
        while _goes_on(typed):
            typed += "\n" + self._line("... ")
        return typed

    def _line(self, prompt: str) -> str:
        if self._is_terminal:
            return input(f"\001\033[1m\002{prompt}\001\033[0m\002")
        line = input(prompt)
        if not sys.stdin.isatty():  # nobody has seen it yet
            print(line.encode(errors="backslashreplace").decode())
        return line


def _goes_on(typed: str) -> bool:
    """Whether a call has begun that the next line may end."""
    if "(" not in typed and not typed.lstrip().startswith("{"):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return codeop.compile_command(typed.strip(), symbol="eval") is None
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return False
