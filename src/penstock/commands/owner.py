"""Let a command that root runs act as the owner of the data folder, whose gateway could not use files of root."""

import ctypes
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = 0
_CAPABILITIES_V3 = 0x20080522
_READ_AND_SEARCH = 1 << 2  # CAP_DAC_READ_SEARCH


def become_owner(folder: Path) -> None:
    """From now on act as the owner of a folder, if this process is root's and the folder another user's.

    Only the effective user changes, so that `as_caller` can undo it for a while. What root may read can still be read:
    Python's modules, and a data folder to which systemd lets nobody but root and the service (DynamicUser=yes).
    """
    if os.geteuid() != _ROOT or not folder.exists():
        return
    status = folder.stat()
    if status.st_uid == _ROOT:
        return
    _act_as(status.st_uid, status.st_gid)


def stay_owner() -> None:
    """Give up for good what `become_owner` could undo: for servers, which never need it again."""
    if _is_acting():
        user, group = os.geteuid(), os.getegid()
        _act_as(_ROOT, os.getgid())
        _take_groups(user, group)
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)


@contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """Act as the owner of a folder inside the block only."""
    was_acting = _is_acting()
    become_owner(folder)
    try:
        yield
    finally:
        if _is_acting() and not was_acting:
            _act_as(_ROOT, os.getgid())


@contextmanager
def as_caller() -> Iterator[None]:
    """Inside the block act as root again, if that is who runs the command: for files outside the data folder, which
    root names.
    """
    user, group = os.geteuid(), os.getegid()
    is_acting = _is_acting()
    if is_acting:
        _act_as(_ROOT, os.getgid())
    try:
        yield
    finally:
        if is_acting:
            _act_as(user, group)


def caller_name() -> str:
    """The name of the user who runs this command, or the number of one without a name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _is_acting() -> bool:
    return os.getuid() == _ROOT and os.geteuid() != _ROOT


def _act_as(user: int, group: int) -> None:
    os.seteuid(_ROOT)  # only root may change groups
    _take_groups(user, group)
    os.setegid(group)
    os.seteuid(user)
    if user != _ROOT:
        _keep_reading()


def _take_groups(user: int, group: int) -> None:
    """Take the groups of a user; one without a name, such as that of a container, has no more than one group."""
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        os.setgroups([group])
    else:
        os.setgroups(os.getgrouplist(name, group))


def _keep_reading() -> None:
    """Take back one of the capabilities of root that the system has turned off with the user, where it has them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "capset"):
        return
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable ones, twice 32 of each
    if libc.capget(head, sets) == 0:
        sets[0] |= sets[1] & _READ_AND_SEARCH
        libc.capset(head, sets)
