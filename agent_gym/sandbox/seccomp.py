"""The system-call filter that every process in the sandbox runs under, as the raw BPF program that ``bwrap --seccomp`` takes.

Namespaces hide the host's files, network and processes, but not the kernel: without a filter, code inside can still make user namespaces,
io_uring rings, keyrings, memory outside every limit (``memfd_create``, ``mmap`` that is shared and anonymous) and sockets of odd families.
The filter is a deny-list that answers ``EPERM``: a list of what is allowed breaks honest programs whenever a C library starts to use a new
call.

Format: ``struct sock_filter`` and ``struct seccomp_data`` of linux/filter.h and linux/seccomp.h, both little-endian here. Numbers: the
kernel's asm/unistd_64.h (x86_64) and asm-generic/unistd.h (aarch64).
"""

from __future__ import annotations

import struct

__all__ = ["ARCHITECTURES", "NUMBERS", "bpf"]

# Architecture (as platform.machine() says) → AUDIT_ARCH_* of linux/audit.h.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Call → number on x86_64, on aarch64 (None: there is none). Denied whatever their arguments, but for those that a rule in bpf() looks into.
NUMBERS: dict[str, tuple[int, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mmap": (9, 222),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_getsetattr": (245, 185),
    "mq_notify": (244, 184),
    "mq_open": (240, 180),
    "mq_timedreceive": (243, 183),
    "mq_timedsend": (242, 182),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}

# Would let a program weaken process 1, which watches it: allowed only where these arguments are 0, which means the caller itself.
_SELF_ONLY = {
    "prlimit64": (0,),
    "sched_setaffinity": (0,),
    "sched_setattr": (0,),
    "sched_setparam": (0,),
    "sched_setscheduler": (0,),
    "setpriority": (0, 1),
}
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH = 0, 4
_X32_BIT = 0x40000000


def _argument(index: int) -> int:
    return 16 + 8 * index  # the low half of seccomp_data.args[index]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _refuse(errno: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | errno)


def _rule(number: int, body: bytes) -> bytes:
    """``body`` runs for this call only; it ends in a return, or falls through with the call's number loaded again."""
    body += _instruction(_LOAD, _NUMBER)
    return _instruction(_JUMP_EQUAL, number, 0, len(body) // 8) + body


def bpf(machine: str) -> bytes:
    """The filter for one architecture.

    Args:
        machine: ``x86_64`` or ``aarch64``.

    Raises:
        KeyError: Any other machine.
    """
    arch = ARCHITECTURES[machine]
    column = 0 if machine == "x86_64" else 1
    number = {name: numbers[column] for name, numbers in NUMBERS.items()}
    program = [
        _instruction(_LOAD, _ARCH),
        _instruction(_JUMP_EQUAL, arch, 1, 0),
        _instruction(_RETURN, _KILL),  # a 32-bit call, whose numbers mean something else
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1),
        _instruction(_RETURN, _KILL),
    ]
    for name, value in number.items():
        if value is None:
            continue
        if name in _SELF_ONLY:
            checks = [_instruction(_LOAD, _argument(i)) + _instruction(_JUMP_EQUAL, 0, 1, 0) + _refuse(_EPERM) for i in _SELF_ONLY[name]]
            program.append(_rule(value, b"".join(checks)))
        elif name == "clone":
            flags = _instruction(_LOAD, _argument(0)) + _instruction(_JUMP_ANY_BIT, _NEW_NAMESPACES, 0, 1) + _refuse(_EPERM)
            program.append(_rule(value, flags))
        elif name == "mmap":
            # Memory that is shared and has no file stays while nobody has it mapped in: no count of a process's memory would find it.
            flags = _instruction(_LOAD, _argument(3)) + _instruction(_JUMP_ANY_BIT, _MAP_ANONYMOUS, 0, 2)
            program.append(_rule(value, flags + _instruction(_JUMP_ANY_BIT, _MAP_SHARED, 0, 1) + _refuse(_EPERM)))
        elif name in ("socket", "socketpair"):
            # Each match jumps over the remaining tests and the refusal.
            tests = [_instruction(_JUMP_EQUAL, family, len(_FAMILIES) - i, 0) for i, family in enumerate(_FAMILIES)]
            program.append(_rule(value, _instruction(_LOAD, _argument(0)) + b"".join(tests) + _refuse(_EAFNOSUPPORT)))
        else:
            # The C library falls back from clone3 (whose flags a filter cannot see) to clone when there is none.
            program.append(_instruction(_JUMP_EQUAL, value, 0, 1) + _refuse(_ENOSYS if name == "clone3" else _EPERM))
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)
