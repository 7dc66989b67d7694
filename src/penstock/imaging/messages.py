"""Write and read what the gateway and its child processes tell each other: messages, and files beside them.

A file is sent from where it is in memory and received into its place: as a part of the encoded message it would be
copied as a whole on either side, and the event loop would wait for each copy. A file that a child returns as it got it
is not sent back.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec.msgpack import Ext

from penstock.long_bodies.buffers import Buffer

FailureKind = Literal["crashed", "timeout", "refused", "busy"]


class Work(msgspec.Struct, frozen=True):
    """A task for a child."""

    task: str
    arguments: dict[str, Any]
    cpu_seconds: float


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """How much of a task is done, from 0 to 1."""

    fraction: float


class Piece(msgspec.Struct, frozen=True, tag="piece"):
    """The next bytes of what a task makes while it runs."""

    data: bytes


class ToSign(msgspec.Struct, frozen=True, tag="to sign"):
    """A task asks for a signature: the private key is in the gateway, never in a child."""

    data: bytes


class Signature(msgspec.Struct, frozen=True):
    """The answer to `ToSign`; none if the gateway cannot sign."""

    signature: bytes | None
    stamp: bytes = b""


class Signed(bytes):
    """A signature, and the time-stamp of it, if it has one."""

    stamp: bytes = b""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """What the function of a task returned."""

    result: Any


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Why a task failed."""

    kind: FailureKind
    message: str


class Confined(msgspec.Struct, frozen=True, tag="confined"):
    """Sent once, before the first task runs: which protections of `confinement` are active in the child."""

    protections: tuple[str, ...]


Reply = Confined | Progress | Piece | ToSign | Done | Failed

# On the wire: one byte with the number of parts, four bytes with the size of each, and the parts. The first part is the
# message, the others are its files, for each of which the message contains an extension value with its number, from 1.
# In a reply, another extension value stands for a file of the task, with its number there.
SIZE_BYTES = 4
# A task that takes files while it runs gets them in pieces behind its message, each behind its size. A size of zero
# ends a file, and the largest ends them all.
NO_MORE_FILES = 2**32 - 1
_FILE = 1  # codes of the extensions
_FILE_OF_TASK = 2
_FILE_BYTES_MIN = 64 * 1024  # shorter ones stay in the message
_PARTS_MAX = 255


def encode(message: Work | Signature | Reply, files_of_task: Sequence[Buffer] = ()) -> list[Buffer]:
    """Return the bytes of a message as pieces to send one after the other, of which the files are not copied.

    All pieces but the first are the files of the message. The receiver of a reply has the files of its task.
    """
    files: list[Buffer] = []
    plain = msgspec.to_builtins(message, builtin_types=(bytes, bytearray, memoryview))
    body = msgspec.msgpack.encode(_without_files(plain, files, files_of_task))
    sizes = b"".join(len(part).to_bytes(SIZE_BYTES, "big") for part in (body, *files))
    return [bytes([1 + len(files)]) + sizes + body, *files]


def _without_files(value: Any, files: list[Buffer], files_of_task: Sequence[Buffer]) -> Any:
    """Return a value with a number in the place of each file, and add the files to a list."""
    if isinstance(value, Buffer):
        for number, file in enumerate(files_of_task, 1):
            if file is value:
                return Ext(_FILE_OF_TASK, bytes([number]))
        if len(value) < _FILE_BYTES_MIN or len(files) + 1 == _PARTS_MAX:
            return value
        files.append(value)
        return Ext(_FILE, bytes([len(files)]))
    if isinstance(value, dict):
        return {name: _without_files(item, files, files_of_task) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_files(item, files, files_of_task) for item in value]
    return value


def read_sizes(sizes: bytes) -> Iterator[int]:
    """The sizes of the parts that follow."""
    return (int.from_bytes(sizes[at : at + SIZE_BYTES], "big") for at in range(0, len(sizes), SIZE_BYTES))


def decode_work(parts: Sequence[Buffer]) -> Work:
    """Return the task of these parts, with its files in their places. Raises MsgspecError, as does `decode_reply`."""
    return msgspec.msgpack.decode(parts[0], type=Work, ext_hook=_FilePlacer(parts))


def decode_signature(parts: Sequence[Buffer]) -> Signed | None:
    """Return the answer to a question for a signature."""
    answer = msgspec.msgpack.decode(parts[0], type=Signature)
    if answer.signature is None:
        return None
    signed = Signed(answer.signature)
    signed.stamp = answer.stamp
    return signed


def decode_reply(parts: Sequence[Buffer], files_of_task: Sequence[Buffer] = ()) -> Reply:
    """Return the reply of these parts, with its files, and those of its task, in their places."""
    placer = _FilePlacer(parts, files_of_task)
    reply: Reply = msgspec.msgpack.decode(
        parts[0], type=Confined | Progress | Piece | ToSign | Done | Failed, ext_hook=placer
    )
    return reply


class _FilePlacer:
    """Puts a file in the place of its number while a message is decoded."""

    def __init__(self, parts: Sequence[Buffer], files_of_task: Sequence[Buffer] = ()) -> None:
        self._files = {_FILE: parts[1:], _FILE_OF_TASK: files_of_task}

    def __call__(self, code: int, number: memoryview) -> Buffer:
        files = self._files.get(code, ())
        if len(number) != 1 or not 0 < number[0] <= len(files):
            raise msgspec.DecodeError("the message names a file that it does not have")
        return files[number[0] - 1]
