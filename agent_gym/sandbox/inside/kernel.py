"""What the zygote asks of the kernel that Python 3.9 has no words for: namespaces, mounts, privileges, the call filter.

Numbers: linux/sched.h, linux/mount.h, linux/prctl.h, linux/capability.h, asm/unistd_64.h and asm-generic/unistd.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct

__all__ = ["clone_into_namespaces", "give_up_privileges", "hide", "loopback_up", "mount_proc", "renew", "resize", "seal", "show"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
_NEW_PID_MOUNT_IPC_NET = 0x20000000 | 0x00020000 | 0x08000000 | 0x40000000
_NOSUID_NODEV, _NOEXEC, _READ_ONLY, _REMOUNT, _DETACH = 2 | 4, 8, 1, 32, 2
_PRIVATE_AND_BELOW = 0x40000 | 0x4000
_SET_DUMPABLE, _BOUNDING_DROP, _SET_SECCOMP, _NO_NEW_PRIVILEGES, _AMBIENT = 4, 24, 22, 38, 47
_HELD = (8, 12, 21)  # CAP_SETPCAP, CAP_NET_ADMIN, CAP_SYS_ADMIN


def clone_into_namespaces() -> int:
    """A fork that is process 1 of namespaces of its own: processes, mounts, IPC, network.

    The raw call: Python's own fork would need a second one in between. This process has one thread, so there is nothing to repair.
    """
    return _checked("clone", _LIBC.syscall(_CLONE, _NEW_PID_MOUNT_IPC_NET | signal.SIGCHLD, 0, 0, 0, 0))


def mount_proc() -> None:
    """Lets ``/proc`` show these namespaces' processes, and keeps mounts from spreading."""
    _mount(b"none", b"/", None, _PRIVATE_AND_BELOW, None)
    _mount(b"proc", b"/proc", b"proc", _NOSUID_NODEV | _NOEXEC, None)


def renew(path: str, size: int, mounted: bool) -> None:
    """Puts an empty file system of that many bytes there, in place of the one that was ``mounted``."""
    if mounted:
        _checked(f"umount {path}", _LIBC.umount2(path.encode(), _DETACH))
    _mount(b"tmpfs", path.encode(), b"tmpfs", _NOSUID_NODEV, b"size=%d,mode=0755" % size)


def resize(path: str, size: int) -> None:
    """Changes how many bytes it may hold; not below what it does hold."""
    _LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", _NOSUID_NODEV | _REMOUNT, b"size=%d" % size)


def seal(path: str) -> None:
    """Makes it read-only."""
    _mount(b"tmpfs", path.encode(), b"tmpfs", _NOSUID_NODEV | _REMOUNT | _READ_ONLY, None)


def loopback_up() -> None:
    """Brings up 127.0.0.1 (SIOCSIFFLAGS with IFF_UP)."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))


def hide() -> None:
    """Closes ``/proc/PID`` of this process to all others."""
    _checked("prctl", _LIBC.prctl(_SET_DUMPABLE, 0, 0, 0, 0))


def show() -> None:
    """Opens it again; a program may look at itself."""
    _checked("prctl", _LIBC.prctl(_SET_DUMPABLE, 1, 0, 0, 0))


def give_up_privileges(filter_: bytes) -> None:
    """For good: capabilities, now and to come, and every call that the filter denies.

    Args:
        filter_: BPF, as ``seccomp.bpf`` makes it.
    """
    for capability in _HELD:
        _checked("bounding set", _LIBC.prctl(_BOUNDING_DROP, capability, 0, 0, 0))
    _checked("ambient set", _LIBC.prctl(_AMBIENT, 4, 0, 0, 0))
    _checked("capset", _LIBC.capset(struct.pack("II", 0x20080522, 0), bytes(24)))
    _checked("no_new_privs", _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    instructions = ctypes.create_string_buffer(filter_, len(filter_))
    program = struct.pack("HxxxxxxP", len(filter_) // 8, ctypes.addressof(instructions))
    _checked("seccomp", _LIBC.prctl(_SET_SECCOMP, 2, program, 0, 0))


def _mount(source: bytes, path: bytes, kind: bytes | None, flags: int, options: bytes | None) -> None:
    _checked(f"mount {path.decode()}", _LIBC.mount(source, path, kind, flags, options))


def _checked(what: str, result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result
