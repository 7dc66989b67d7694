"""Confine a child process before it reads a stranger's file: no network, no other programs, no files but code to read.

Four mechanisms of Linux, each used where the kernel has it; none of them can be undone by the process:

- a network namespace of its own, without any interface;
- Landlock: files can be read below the folders of Python and of the packages only, and nothing can be written;
- a seccomp filter that refuses calls no decoder needs: sockets, new programs and processes, signals to and memory of
  other processes, memory and queues shared with them, writing to files by name, mounting, changing the clock or the
  order in which processes run, and rarely used parts of the kernel;
- no capabilities, which a process of root has otherwise, and no way to get any.

Each function returns which of them are active. The filter refuses a list of calls and allows all others, because which
calls a C library needs differs from one release to the next.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

NO_NEW_PRIVILEGES = "no new privileges"
NETWORK_NAMESPACE = "network namespace"
LANDLOCK = "Landlock"
SECCOMP = "seccomp"
NO_CAPABILITIES = "no capabilities"
PROTECTIONS = (NO_NEW_PRIVILEGES, NETWORK_NAMESPACE, LANDLOCK, SECCOMP, NO_CAPABILITIES)

MAX_OPEN_FILES = 64
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000


def limit_resources(memory_bytes: int) -> None:
    """Limit memory and open files, and forbid writing to files and core dumps."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MAX_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if sys.platform == "linux":  # elsewhere the address space cannot be limited
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def leave_network() -> tuple[str, ...]:
    """Move this process into a network namespace of its own; returns the protection if that was permitted."""
    if sys.platform != "linux":
        return ()
    libc = _libc()
    # Without privileges it needs a user namespace too, which some systems do not permit.
    permitted = libc.unshare(_CLONE_NEWNET) == 0 or libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0
    return (NETWORK_NAMESPACE,) if permitted else ()


def confine() -> tuple[str, ...]:
    """Confine this process, and those that it will fork, for good; returns the protections that are active.

    Only one thread may be running. What remains is to `refuse_calls`, after which nothing can be forked.
    """
    if sys.platform != "linux" or _has_threads():
        return ()
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return ()
    landlock = (LANDLOCK,) if _restrict_files(_code_folders()) else ()
    without = (NO_CAPABILITIES,) if _drop_capabilities() else ()
    return (NO_NEW_PRIVILEGES, *landlock, *without)


def refuse_calls() -> tuple[str, ...]:
    """Have the kernel refuse calls that no decoder needs; returns the protection if it is active."""
    return (SECCOMP,) if sys.platform == "linux" and not _has_threads() and _filter_calls() else ()


def _has_threads() -> bool:
    """Whether other threads run, which would not be confined."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) > 1
    except OSError:  # /proc is not there; the module that is imported before starts none
        return False


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# --------------------------------------------------------------------------------------------------------- capabilities

_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITIES_VERSION = 0x20080522  # of the structures of `capset`
_MOST_CAPABILITIES = 64


def _drop_capabilities() -> bool:
    """Give up all capabilities, and those that a program could be started with; False if the kernel refuses."""
    libc = _libc()
    for number in range(_MOST_CAPABILITIES):
        if libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) < 0:  # the kernel has no more of them
            break
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # only a process that has capabilities may, and need
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    return bool(libc.capset(header, bytes(24)) == 0)


# ------------------------------------------------------------------------------------------------------------- Landlock

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# How many rights on files the versions of Landlock know; all are refused, and reading is then allowed in some folders.
_FILE_RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
_FILE_RIGHTS = 16
_NETWORK_RIGHTS = 0b11  # binding and connecting TCP sockets, from version 4
_SCOPES = 0b11  # abstract UNIX sockets and signals stay among confined processes, from version 6


def _code_folders() -> list[str]:
    """Where Python, its packages and shared libraries are: modules and codecs may be loaded after confinement."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    shared = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"]
    return [path for path in dict.fromkeys([*folders, *sys.path, *shared]) if path and Path(path).exists()]


def _restrict_files(readable: Iterable[str]) -> bool:
    """Refuse all access to files except reading below these paths; False if the kernel has no Landlock."""
    libc = _libc()
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    if version < 1:
        return False
    file_rights = (1 << _FILE_RIGHTS_OF_VERSION.get(version, _FILE_RIGHTS)) - 1
    attributes = struct.pack("=Q", file_rights)
    if version >= 4:
        attributes += struct.pack("=Q", _NETWORK_RIGHTS)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow_reading(libc, ruleset, path)
        return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _READ_FILE | _READ_DIR if Path(path).is_dir() else _READ_FILE
        libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)


# -------------------------------------------------------------------------------------------------------------- seccomp

# Calls that are refused, with their numbers on x86-64 and on 64-bit ARM (None: the architecture does not have it).
_REFUSED: dict[str, tuple[int, int | None]] = {
    # network
    "socket": (41, 198), "socketpair": (53, 199), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "connect": (42, 203), "sendto": (44, 206), "sendmsg": (46, 211), "accept4": (288, 242), "sendmmsg": (307, 269),
    # programs, processes and namespaces
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None), "unshare": (272, 97),
    "setns": (308, 268), "personality": (135, 92), "setpriority": (141, 140),
    # other processes
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    # changes to files
    "creat": (85, None), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, None),
    "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35), "link": (86, None),
    "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "truncate": (76, 45), "ftruncate": (77, 46),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "open_by_handle_at": (304, 265),
    # memory and queues of System V and of POSIX, which other processes share and which outlive this one
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # the clock, the name, and the order in which processes run
    "clock_settime": (227, 112), "settimeofday": (164, 170), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    # the system
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "syslog": (103, 116), "acct": (163, 89),
    "quotactl": (179, 60), "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262), "kcmp": (312, 272),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "process_madvise": (440, 440),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294),
}  # fmt: skip
# C libraries use older calls instead of these when the kernel says that it does not have them.
_MISSING = {"clone3": (435, 435), "openat2": (437, 437)}
_OPEN: tuple[int, int | None] = (2, None)
_OPENAT: tuple[int, int | None] = (257, 56)
_CLONE = (56, 220)
_TGKILL = (234, 131)
_PRLIMIT = (302, 261)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # the column above, and the kernel's name
_X32_CALLS = 0x40000000  # calls of the x32 ABI have this bit

_CLONE_THREAD = 0x00010000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

# Instructions of the filter; each is a code, two relative jumps (if true, if false) and a value.
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_FAIL = 0x00050000
_NUMBER_OFFSET = 0
_ARCHITECTURE_OFFSET = 4
_ARGUMENTS_OFFSET = 16

Instruction = tuple[int, int, int, int]


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _filter_calls() -> bool:
    """Install the filter; False if the kernel has none, or the architecture is not in the tables."""
    if platform.machine() not in _ARCHITECTURES or sys.maxsize < 2**32:
        return False
    column, architecture = _ARCHITECTURES[platform.machine()]
    program = list(_program(column, architecture, os.getpid()))
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    described = _Filter(len(program), code)
    return bool(_libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0) == 0)


def _program(column: int, architecture: int, pid: int) -> Iterator[Instruction]:
    refuse = (_RETURN, 0, 0, _FAIL | errno.EPERM)
    allow = (_RETURN, 0, 0, _ALLOW)
    yield (_LOAD, 0, 0, _ARCHITECTURE_OFFSET)
    yield (_IF_EQUAL, 1, 0, architecture)
    yield refuse
    yield (_LOAD, 0, 0, _NUMBER_OFFSET)
    yield (_IF_AT_LEAST, 0, 1, _X32_CALLS)
    yield refuse
    for numbers in _REFUSED.values():
        if (number := numbers[column]) is not None:
            yield (_IF_EQUAL, 0, 1, number)
            yield refuse
    for missing in _MISSING.values():
        yield (_IF_EQUAL, 0, 1, missing[column])
        yield (_RETURN, 0, 0, _FAIL | errno.ENOSYS)
    # Calls whose first argument decides: new threads but no processes, and signals and limits of this process only.
    # Behind each call are the instruction that allows it and its value.
    for call, allows, value in (
        (_CLONE, _IF_ANY_BIT, _CLONE_THREAD),
        (_TGKILL, _IF_EQUAL, pid),
        (_PRLIMIT, _IF_EQUAL, 0),
    ):
        yield (_IF_EQUAL, 0, 4, call[column])
        yield (_LOAD, 0, 0, _ARGUMENTS_OFFSET)
        yield (allows, 0, 1, value)
        yield allow
        yield refuse
    # Opening is allowed unless it is for writing.
    for opening, argument in ((_OPEN, 1), (_OPENAT, 2)):
        if (number := opening[column]) is not None:
            yield (_IF_EQUAL, 0, 4, number)
            yield (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * argument)
            yield (_IF_ANY_BIT, 1, 0, _WRITING)
            yield allow
            yield refuse
    yield allow
