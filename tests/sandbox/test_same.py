# ruff: noqa: E501 - a program is easier to read on one line
"""A forked Python behaves as one that was started: the two kinds of sandbox give the same answers."""

import pytest

from agent_gym.sandbox import ExecResult, Limits, Sandbox, SandboxPool

pytestmark = pytest.mark.usefixtures("needs_sandbox")

PROGRAMS = {
    "exit code": "import sys; sys.exit(3)",
    "large exit code": "raise SystemExit(300)",
    "exit with text": "import sys; print('out'); sys.exit('why')",
    "exit with nothing": "raise SystemExit",
    "traceback": "def f():\n  return 1 / 0\nf()",
    "chained traceback": "try: {}['a']\nexcept KeyError as e: raise ValueError('b') from e",
    "group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "syntax error": "x = (",
    "indentation": "if 1:\nx",
    "latin-1": "# coding: latin-1\nprint('ä')",
    "hook": "import sys\nsys.excepthook = lambda t, e, b: print(t, e, b.tb_frame.f_code.co_name, b.tb_next)\n1/0",
    "interrupt": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)",
    "terminate": "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)",
    "abort": "import os; print('lost'); os.abort()",
    "at exit": "import atexit\nclass Bad:\n  def __repr__(self): return 'bad'\n  def __call__(self): raise ValueError('x')\natexit.register(print, 'last'); atexit.register(Bad())\nprint('first')",
    "threads": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\nprint('early')",
    "daemon threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "thread that raises": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t'); t.start(); t.join()",
    "unflushed file": "f = open('f', 'w')\nf.write('kept')",
    "unflushed file of a module": "open('m.py', 'w').write(\"g = open('g', 'w')\\ng.write('kept')\")\nimport m",
    "unflushed file in a cycle": "f = open('f', 'w'); f.write('kept')\nclass A: pass\na = A(); a.a = a; a.f = f; del a, f",
    "del at the end": "class A:\n  def __del__(self): print('gone')\na = A()",
    "closed stdout": "import sys\nprint('x')\nsys.stdout.close()",
    "broken stdout": "import os\nos.close(1)\nprint('x')",
    "errors of the encoding": "import sys\nsys.stdout.write('\\udcff')\nprint('\\ud800', file=sys.stderr)",
    "binary": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "order of streams": "import sys\nprint('a'); print('b', file=sys.stderr); print(sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.isatty())",
    "stdin": "import sys\nprint(input(), sys.stdin.read(), sys.stdin.name, sys.stdout.name, sys.stderr.name, sys.stdin.seekable())",
    "name and file": "import sys\nprint(__name__, __file__, __doc__, __package__, __spec__, sys.argv, sys.orig_argv, sorted(globals()))",
    "own source": "import inspect\ndef f(): pass\nprint(inspect.getsource(f), open(__file__).read())",
    "flags": "import sys\nprint(sys.flags, sys.path, sys.version_info, sys.executable, sys.dont_write_bytecode, sys.getrecursionlimit(), hash('a'))",
    "environment": "import os\nprint(sorted(os.environ.items()), os.getcwd(), os.umask(0), os.getpid(), os.getpriority(0, 0), os.getsid(0), os.getpgrp())",
    "limits": "import resource\nprint([resource.getrlimit(n) for n in range(16) if n != resource.RLIMIT_NPROC])",
    "signals": "import signal\nprint([signal.getsignal(n) for n in range(1, 32)])",
    "descriptors": "import os\nprint(sorted(os.listdir('/proc/self/fd')))",
    "dumpable": "print(len(open('/proc/self/maps').read()) > 100)",
    "frames": "import sys\ntry: print([*vars(sys._getframe(1)['f_globals'])])\nexcept (ValueError, TypeError): pass",
    "our package": "import agent_gym",
    "shadowed modules": "open('json.py', 'w').write('mine = 1')\nopen('random.py', 'w').write('mine = 2')",
    "multiprocessing": "import multiprocessing as m\nif __name__ == '__main__':\n  for how in ('fork', 'spawn'):\n    with m.get_context(how).Pool(2) as p: print(p.map(abs, [-1, -2]))",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1); raise SystemExit(4)'], capture_output=True))",
    "asyncio": "import asyncio\nasync def f():\n  await asyncio.sleep(0)\n  return 1\nprint(asyncio.run(f()))",
    "deep recursion": "def f(n): return n and f(n - 1)\ntry: f(10**6)\nexcept RecursionError: print('too deep')",
    "dataclass and pickle": "import dataclasses, pickle\n@dataclasses.dataclass\nclass A: x: int\nprint(pickle.loads(pickle.dumps(A(1))))",
    "future": "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f.__annotations__)",
    "no future of ours": "def f(x: int): pass\nprint(f.__annotations__)",
    "main of the module": "import __main__\nx = 5\nprint(__main__.x)",
    "tracing": "import sys\nsys.settrace(lambda *a: None)\ndef f(): pass\nf()\nprint('on')",
    "warnings": "import warnings\nwarnings.warn('w')\nassert (1, 'x')",
}


def shown(result: ExecResult) -> tuple[object, ...]:
    return result.reason, result.exit_code, result.signal, result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_comes_to_the_same_in_a_warm_sandbox_as_in_one_of_its_own(name: str, pool: SandboxPool) -> None:
    limits = Limits(cpu_s=30, wall_s=60)
    with pool.acquire(limits=limits) as warm, Sandbox(limits=limits) as one_shot:
        results = []
        for sandbox in (one_shot, warm):
            results.append((shown(sandbox.run_python(PROGRAMS[name], "an", "argument", stdin=b"line\nrest")), dict(sandbox.files)))
        assert results[0] == results[1]


def test_modules_of_the_workspace_come_before_what_is_preloaded(pool: SandboxPool) -> None:
    files = {"json.py": b"mine = 1", "random/__init__.py": b"mine = 2", "socket.py": b"mine = 3"}
    program = "import json, random, socket\nprint(json.mine, random.mine, socket.mine)"
    with pool.acquire(files) as warm, Sandbox(files) as one_shot:
        assert warm.run_python(program).stdout == one_shot.run_python(program).stdout == b"1 2 3\n"
