# ruff: noqa: E501 - a hostile program is easier to read on one line
"""Programs that attack the sandbox, each with what must come of it; run as a script, tries them all and prints what did not hold.

The numbers are those of the list that issue 7 refers to.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent_gym.sandbox import ExecResult, Limits, Sandbox, SandboxPool, grade_with_check

QUICK = Limits(
    cpu_s=0.6,
    wall_s=0.6,
    memory_mib=96,
    processes=20,
    open_files=64,
    file_mib=4,
    workspace_mib=8,
    workspace_files=400,
    tmp_mib=4,
    output_kib=16,
    flood_mib=4,
)
PATIENT = Limits(
    cpu_s=60,
    wall_s=120,
    memory_mib=96,
    processes=20,
    open_files=64,
    file_mib=4,
    workspace_mib=8,
    workspace_files=400,
    tmp_mib=4,
    output_kib=16,
    flood_mib=4,
)

Holds = Callable[[ExecResult, Sandbox], bool]


def ended(*reasons: str) -> Holds:
    return lambda result, _: result.reason in reasons


def says(text: str) -> Holds:
    return lambda result, _: result.reason == "exit" and result.stdout.decode(errors="replace").strip() == text


def died_of(*signals: str) -> Holds:
    return lambda result, _: result.signal in signals


def stays_mine(result: ExecResult, sandbox: Sandbox) -> bool:
    time.sleep(0.4)  # for what should be dead by now
    return result.ok and sandbox.run(["cat", "solution.py"]).stdout == b"mine"


@dataclass(frozen=True)
class Hostile:
    """A program and what must come of it."""

    source: str
    holds: Holds
    limits: Limits = PATIENT
    bash: bool = False
    loopback: bool = False
    files: dict[str, bytes] = field(default_factory=dict)


_TRIES = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def refused(f, *args):
    ctypes.set_errno(0)
    try: r = f(*args)
    except (OSError, ValueError, PermissionError): return True
    return isinstance(r, int) and r == -1
"""
# Everything of the host that can be got at, by name and by walking; {canary} is planted outside.
_SEARCH = """
import os
found = [p for p in ("/etc/shadow", "/root", "/home", "/var", "/sys", "/boot", {canary!r}) if os.path.lexists(p)]
for pid in os.listdir("/proc"):
    for name in ("environ", "mem", "root" + {canary!r}, "cwd", "fd/3", "fd/4", "maps"):
        if pid.isdigit() and int(pid) != os.getpid():
            try: found.append(open("/proc/" + pid + "/" + name, "rb").read(1000))
            except OSError: pass
for root, _, names in os.walk("/"):
    if not root.startswith(("/proc", "/usr", "/dev", "/lib", "/bin", "/sbin", "/etc/alternatives")):
        for name in names:
            try: found += [root] if b"the-canary-sings" in open(os.path.join(root, name), "rb").read() and root != "/run/program" else []
            except OSError: pass
print(found)
"""
_IGNORES_ALL = "import signal\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"

PROGRAMS: dict[str, Hostile] = {
    "1 fork bomb": Hostile("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", ended("wall", "cpu"), QUICK),
    "2 bash fork bomb": Hostile(":(){ :|:& };:; sleep 60", ended("wall", "cpu"), QUICK, bash=True),
    "3 memory bomb that goes on": Hostile(
        "l = []\nwhile True:\n  try: l.append(bytearray(1 << 20))\n  except MemoryError: pass", ended("wall", "cpu", "memory"), QUICK
    ),
    "4 memory of many": Hostile(
        "import os, time\nfor _ in range(12):\n  if os.fork() == 0: break\nb = bytearray(70 << 20)\ntime.sleep(60)", ended("memory")
    ),
    "5 uncounted memory": Hostile(
        _TRIES
        + "import mmap\nprint(refused(mmap.mmap, -1, 1 << 32), refused(libc.memfd_create, b'x', 0), refused(libc.syscall, 447, 0), *(refused(libc.shmget, k, 1 << 20, 0o1600) for k in range(3)))",
        says("True " * 5 + "True"),
    ),
    "6 many files": Hostile("i = 0\nwhile True:\n  open(f'{i}', 'w').close()\n  i += 1", ended("files")),
    "6 one large file": Hostile("try: open('f', 'wb').write(bytes(6 << 20))\nexcept OSError as e: print(e.errno)", says("27")),
    "6 a full disk": Hostile(
        "try:\n  for i in range(9): open(f'{i}', 'wb').write(bytes(1 << 20))\nexcept OSError as e: print(e.errno)", says("28")
    ),
    "6 sparse files": Hostile(
        "for i in range(99):\n  open(f'{i}', 'wb').truncate(4 << 20)\ntry: open('x', 'wb').truncate(10 << 30)\nexcept OSError as e: print(e.errno)",
        lambda r, s: says("27")(r, s) and sum(map(len, s.files.values())) <= 8 << 20,
    ),
    "7 flood": Hostile("yes & yes >&2", ended("output", "exit"), bash=True),
    "7 endless output": Hostile(
        "yes", lambda r, _: r.reason == "output" and len(r.stdout) < 17 << 10 and r.stdout_cut > 1 << 20, bash=True
    ),
    "7 endless errors": Hostile(
        "import os\nwhile True: os.write(2, b'\\xff' * 65536)", lambda r, _: r.reason == "output" and len(r.stderr) < 17 << 10
    ),
    "8 spinning threads, no signals": Hostile(
        _IGNORES_ALL
        + "import threading\ndef spin():\n  while True: pass\nfor _ in range(8): threading.Thread(target=spin).start()\nspin()",
        ended("wall", "cpu"),
        QUICK,
    ),
    "9 daemon that comes back": Hostile(
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  os.closerange(0, 256)\n  time.sleep(0.2)\n  open('/workspace/solution.py', 'w').write('cheat')\n  time.sleep(60)",
        stays_mine,
        files={"solution.py": b"mine"},
    ),
    "10 child that holds stdout": Hostile("import os, time\nif os.fork() == 0: time.sleep(100)\nprint('done', flush=True)", says("done")),
    "11 signals to process 1 and to all": Hostile(
        _IGNORES_ALL
        + "import os\nfor n in range(1, 65):\n  for pid in (1, -1):\n    try: os.kill(pid, n)\n    except OSError: pass\nprint('alive')",
        says("alive"),
    ),
    "12 looking into process 1": Hostile(
        _TRIES
        + "out = [refused(libc.ptrace, 16, 1, 0, 0), refused(libc.process_vm_readv, 1, 0, 0, 0, 0, 0), refused(libc.syscall, 438, 1, 3, 0)]\nfor n in ('mem', 'environ', 'maps', 'fd/3', 'root/etc/shadow', 'task/1/mem'): out.append(refused(open, '/proc/1/' + n, 'rb'))\nout.append(refused(os.listdir, '/proc/1/fd'))\nprint(all(out))",
        says("True"),
    ),
    "13 namespaces and mounts": Hostile(
        _TRIES
        + "n = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]\nbefore = open('/proc/self/mounts').read()\nout = [refused(libc.unshare, f) for f in (0x10000000, 0x20000, 0x20000000, 0x40000000)]\nout += [refused(libc.syscall, n, 0x10000011, 0, 0, 0, 0), refused(libc.syscall, 435, 0, 0), refused(libc.setns, 0, 0), refused(libc.mount, b'a', b'/tmp', b'tmpfs', 0, 0), refused(libc.umount2, b'/workspace', 2), refused(libc.syscall, 155 if n == 56 else 41, b'/', b'/'), refused(libc.chroot, b'/tmp')]\nprint(all(out), before == open('/proc/self/mounts').read())",
        says("True True"),
    ),
    "14 network": Hostile(
        _TRIES
        + "out = []\nfor a in (('1.1.1.1', 53), ('169.254.169.254', 80), ('10.0.0.1', 22), ('127.0.0.1', 22)):\n  out.append(refused(socket.create_connection, a, 5))\nfor family in (16, 17, 38, 40, 44): out.append(refused(socket.socket, family, socket.SOCK_RAW))\nout += [refused(socket.socket(socket.AF_UNIX).connect, '\\0{abstract}'), refused(libc.syscall, 425, 1, 0), refused(socket.gethostbyname, 'example.org')]\nprint(out == [True] * len(out))",
        says("True"),
    ),
    "14 the task asked for a loopback": Hostile(
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(socket.create_connection(s.getsockname()) is not None)",
        says("True"),
        loopback=True,
    ),
    "15 search for the host": Hostile(_SEARCH, says("[]")),
    "16 odd files": Hostile(
        "import os, socket\nfor n, t in (('a', '/etc/passwd'), ('b', '/proc/1/root'), ('c', {canary!r}), ('d', '.')): os.symlink(t, n)\nos.mkfifo('pipe')\nsocket.socket(socket.AF_UNIX).bind('sock')\nopen('h', 'w').write('h')\nfor i in range(50): os.link('h', f'h{i}')\nopen(b'\\xff', 'w')\nopen('new\\nline', 'w')\nfor _ in range(300):\n  os.mkdir('deep'); os.chdir('deep')",
        lambda r, s: (
            r.ok
            and set(s.files) == {"h", *(f"h{i}" for i in range(50))}
            and {"symbolic link", "pipe", "socket", "name"} <= {why for _, why in r.left_out}
        ),
    ),
    "16 a locked directory": Hostile(
        "import os\nos.mkdir('x'); open('x/f', 'w').write('f'); os.chmod('x/f', 0); os.chmod('x', 0); os.chmod('.', 0)",
        lambda r, s: r.ok and s.files == {"x/f": b"f"},
    ),
    "17 stopped": Hostile(
        "import os, signal\nif os.fork() == 0: signal.pause()\nos.kill(os.getpid(), signal.SIGSTOP)", ended("wall"), QUICK
    ),
    "17 zombies": Hostile(
        "import os, time\nwhile True:\n  try:\n    if os.fork() == 0: os._exit(0)\n  except OSError: time.sleep(0.01)",
        ended("wall", "cpu"),
        QUICK,
    ),
    "18 the kernel's buffers": Hostile(
        "import os, socket, time\nfor _ in range(12):\n  if os.fork() == 0: break\nkept = []\ntry:\n  while True:\n    r, w = os.pipe(); os.set_blocking(w, False); kept.append((r, w))\n    try:\n      while True: os.write(w, bytes(65536))\n    except BlockingIOError: pass\nexcept OSError: time.sleep(100)",
        ended("wall", "cpu", "memory"),
        QUICK,
    ),
    "18 watches and counters": Hostile(
        _TRIES
        + "made = 0\ntry:\n  while True:\n    assert min(libc.inotify_init(), libc.eventfd(0, 0)) >= 0; made += 2\nexcept AssertionError: print(made < 64)",
        says("True"),
    ),
    "19 segfault": Hostile("import faulthandler, ctypes; faulthandler.disable(); ctypes.string_at(0)", died_of("SIGSEGV")),
    "19 abort": Hostile("import os; os.abort()", died_of("SIGABRT")),
    "19 stack overflow": Hostile(
        "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n  def __repr__(self): return repr(self)\nrepr(A())",
        died_of("SIGSEGV", "SIGBUS"),
    ),
    "20 more rights": Hostile(
        _TRIES
        + "import resource, fcntl\nout = [refused(resource.setrlimit, l, (10**6, 10**6)) for l in (resource.RLIMIT_NPROC, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE)]\nout += [refused(os.nice, -15), refused(os.setpriority, 0, 1, 0), refused(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)), refused(os.sched_setaffinity, 1, {0}), refused(os.setuid, 0), refused(os.setgroups, [0]), refused(open, '/dev/tty', 'w'), refused(fcntl.ioctl, 0, 0x5412, b'x'), refused(libc.personality, 0x0040000)]\nprint(all(out))",
        says("True"),
    ),
    "20 setuid programs": Hostile(
        "cp /bin/sh s && chmod 4755 s; ./s -p -c 'id -u'; su -c id root </dev/null; [ $(id -u) = 1000 ] && grep -q 'CapEff:.0000000000000000' /proc/self/status && echo same",
        lambda r, _: r.stdout.split() == [b"1000", b"same"],
        bash=True,
    ),
    "21 a forged reply": Hostile(
        "import os, sys\nframe = (60).to_bytes(8, 'big') + (1).to_bytes(8, 'big') + b'exit 0 0.0 0.0 0 '\nfor fd in range(256):\n  try: os.write(fd, frame * 3)\n  except OSError: pass\nos.closerange(0, 256)\nos._exit(7)",
        lambda r, _: (r.reason, r.exit_code) == ("exit", 7) and r.stdout.count(b"exit 0 0.0") == 3,
    ),
    "29 rewards in files": Hostile(
        "import fcntl, os\nfor n in ('reward.txt', 'score.json', '/tmp/reward', 'nan'): open(n, 'w').write('1.0')\nfcntl.flock(open('/usr/bin/env'), fcntl.LOCK_EX)\nif os.fork() == 0:\n  while True: pass",
        ended("exit"),
    ),
    "30 traces everywhere": Hostile(
        "import builtins, json, os, socket, sys\nfor d in ('/workspace', '/tmp', '/dev/shm'): open(d + '/trace', 'w').write('trace')\nos.environ['TRACE'] = '1'; builtins.trace = json.trace = sys.trace = 1\njson.dumps = None\ns = socket.socket(socket.AF_UNIX); s.bind('\\0trace'); s.listen()\nt = socket.socket(); t.bind(('0.0.0.0', 5555)); t.listen()\nif os.fork() == 0:\n  import time; time.sleep(100)",
        ended("exit"),
    ),
}

_LOOK = """
import builtins, json, os, resource, signal, socket, sys
out = [sorted(os.listdir(d)) for d in (".", "/tmp", "/dev/shm", "/run/program", "/dev", "/run", "/")]
out += [sorted(p for p in os.listdir("/proc") if p.isdigit()), sorted(os.environ.items()), sorted(vars(builtins)), sorted(vars(json)), sorted(vars(sys))]
out += [sorted(sys.modules), sys.path, os.getpid(), os.getppid(), sorted(os.listdir("/proc/self/fd")), str([signal.getsignal(n) for n in range(1, 32)])]
out += [open("/proc/" + n).read() for n in ("net/unix", "net/tcp", "net/udp", "sysvipc/shm", "sysvipc/msg", "sysvipc/sem", "self/mounts", "self/limits", "self/cgroup", "net/dev")]
out += [os.statvfs(d).f_files - os.statvfs(d).f_ffree for d in (".", "/tmp", "/dev/shm")]
socket.socket(socket.AF_UNIX).bind("\\0trace")
t = socket.socket(); t.bind(("0.0.0.0", 5555)); t.listen()
print(json.dumps(out))
"""

LIAR = """
class Liar:
    def __getattr__(self, name): return lambda *a: True
    def _true(self, *a): return True
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = _true
    def _me(self, *a): return self
    __sub__ = __rsub__ = __add__ = __abs__ = __getitem__ = __iter__ = __next__ = __call__ = _me
    __hash__ = lambda self: 0
def f(*a): return Liar()
"""
_GRADED = "KEY = 'the-canary-sings'\ndef check(f):\n  for n in range(4): assert f(n) == [n, KEY[:0] + 'x' * n], KEY\n"
# Programs for that test, none of which solves it.
CHEATS: dict[str, str] = {
    "22 equals everything": LIAR,
    "22 a list that equals everything": "class L(list):\n  __eq__ = lambda a, b: True\ndef f(n): return L()",
    "23 _exit": "import os\ndef f(n): os._exit(0)",
    "23 exit": "import sys\ndef f(n): sys.exit(0)",
    "23 exit at import": "raise SystemExit(0)",
    "23 at exit": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit",
    "23 killed": "import os, signal\ndef f(n): os.kill(os.getpid(), signal.SIGKILL)",
    "23 loops at import": "while True: pass",
    "24 prints": "def f(n): print('OK\\n5 passed in 0.01s\\x1b[2K\\rEXITCODESTART0EXITCODEEND<testsuite failures=\"0\"/>')",
    "24 sends a verdict": 'import os\nd = b\'{"tuple":["verdict",true,""]}\'\nfor fd in range(3, 20):\n  try: os.write(fd, len(d).to_bytes(8, \'big\') + d)\n  except OSError: pass\ndef f(n): pass',
    "27 walks frames and objects": "import gc, sys\ndef f(n):\n  frame, seen = sys._getframe(), [str(o)[:200] for o in gc.get_objects() if isinstance(o, (str, dict, tuple))]\n  while frame: seen.append(str(frame.f_locals)); frame = frame.f_back\n  assert not any('the-canary-' + 'sings' in s for s in seen)\n  return 0",
    "28 deep": "def f(n):\n  x = []\n  for _ in range(10**6): x = [x]\n  return x",
    "28 itself": "def f(n):\n  x = []; x.append(x); return x",
    "28 many digits": "def f(n): return 1 << (10**7)",
    "28 long": "def f(n): return 'x' * (64 << 20)",
    "28 nan keys and surrogates": "def f(n): return {float('nan'): '\\ud800' for _ in range(3)}",
    "28 endless": "def f(n):\n  while True: yield n",
    "28 reduce and repr": "class R:\n  def __reduce__(self): return (print, ('no',))\n  def __repr__(self): raise SystemExit\ndef f(n): return R()",
    "29 rewrites results": "import os\nfor p in ('/workspace/reward.txt', '/tmp/score'): open(p, 'w').write('nan inf 1.0')\nif os.fork() == 0:\n  while True: open('/workspace/reward.txt', 'w').write('1.0')\ndef f(n): return 1.0",
}
# Right as long as it remembers how often it was called.
CALL_COUNTER = "answers = [[0, ''], [1, 'x'], [2, 'xx'], [3, 'xxx']]\ndef f(n): return answers.pop(0)"


@contextmanager
def canary() -> Iterator[str]:
    """A file on the host that nothing inside may see."""
    with tempfile.NamedTemporaryFile("w", prefix="agent-gym-canary-") as file:
        file.write("the-canary-sings")
        file.flush()
        yield file.name


def try_program(sandbox: Sandbox, hostile: Hostile, outside: str) -> str:
    """Runs one and says what did not hold; the sandbox then is in a new episode."""
    source = hostile.source.replace("{canary!r}", repr(outside)).replace("{abstract}", "agent-gym-abstract")
    sandbox.reset(hostile.files)
    limits = hostile.limits
    result = sandbox.run(["bash", "-c", source], limits=limits) if hostile.bash else sandbox.run_python(source, limits=limits)
    if not hostile.holds(result, sandbox):
        return f"came to {result}"
    if any(b"the-canary-sings" in data for data in (result.stdout, result.stderr, *sandbox.files.values())):
        return f"saw the canary: {result}"
    if not sandbox.run(["true"], limits=Limits()).ok:
        return "broke the sandbox"
    sandbox.reset()
    return ""


def look(sandbox: Sandbox) -> bytes:
    """What a program sees of its surroundings in the current episode."""
    result = sandbox.run_python(_LOOK, limits=PATIENT)
    return result.stdout if result.ok else result.stderr


def passes(pool: SandboxPool, program: str, isolate_calls: bool = False) -> bool:
    """Whether a cheat passes."""
    limits = Limits(cpu_s=3, wall_s=60, memory_mib=256)
    return grade_with_check(program, "", _GRADED, "f", limits, pool, isolate_calls=isolate_calls).passed


def main() -> None:
    """Tries everything, and prints an object of what did not hold."""
    wrong: dict[str, str] = {}
    with canary() as outside, SandboxPool() as pool:
        for name, hostile in PROGRAMS.items():
            with pool.acquire(loopback=hostile.loopback) as sandbox:
                fresh = look(sandbox)
                if complaint := try_program(sandbox, hostile, outside):
                    wrong[name] = complaint
                elif (seen := look(sandbox)) != fresh:
                    wrong[name] = f"left a trace: {seen!r} after {fresh!r}"
        with Sandbox() as one_shot:
            for name in ("1 fork bomb", "12 looking into process 1", "13 namespaces and mounts", "20 more rights", "21 a forged reply"):
                if complaint := try_program(one_shot, PROGRAMS[name], outside):
                    wrong[f"{name}, one-shot"] = complaint
        for name, program in CHEATS.items():
            if passes(pool, program):
                wrong[name] = "passed"
        if not passes(pool, CALL_COUNTER) or passes(pool, CALL_COUNTER, isolate_calls=True):
            wrong["30 counts calls"] = "isolation of calls makes no difference"
    json.dump({"tried": len(PROGRAMS) + len(CHEATS) + 1, "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
