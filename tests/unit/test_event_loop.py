"""Long work leaves rounds of the event loop to other tasks, and helper threads do not interrupt it."""

import asyncio
import base64
import ctypes
import io
import random
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest
from PIL import Image

from penstock import event_loop
from penstock.api import body
from penstock.chat import provider_api, stream
from penstock.event_loop import LoopThreads, LoopTurns, cancel_and_wait, run_aside
from penstock.generations import validate
from penstock.long_bodies import json_decoding, json_encoding, json_outline
from penstock.media import transfer
from penstock.providers import exchange
from penstock.recordings import files, fingerprints
from penstock.schema import Request
from penstock.upstream import client
from penstock.values import OrgId
from tests.api.http_calls import served_api
from tests.fake_providers import faults
from tests.gateway import OpenGateway, sqlite_only

ORG = OrgId("org_1")

LONG, SHORT = 2**20, 2**10
Found = TypeVar("Found")


async def rounds(work: Callable[[], Awaitable[object]], count: int) -> list[int]:
    """Do the work so many times at once. Returns the round of the loop in which each ended."""
    now = 0
    done: list[int] = []

    async def watch() -> None:
        nonlocal now
        while True:
            now += 1
            await asyncio.sleep(0)

    async def work_and_note() -> None:
        await work()
        done.append(now)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(work_and_note() for _ in range(count)))
    watching.cancel()
    return done


async def test_one_long_piece_of_work_per_round_of_the_loop() -> None:
    turns = LoopTurns()
    assert len(set(await rounds(lambda: turns.wait_turn(LONG), 20))) == 20


async def test_short_work_does_not_wait() -> None:
    turns = LoopTurns()
    assert set(await rounds(lambda: turns.wait_turn(SHORT), 20)) == {1}


async def test_a_cancelled_task_does_not_block_the_others() -> None:
    turns = LoopTurns()
    waiting = [asyncio.create_task(turns.wait_turn(LONG)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[1].cancel()
    await asyncio.wait_for(waiting[2], 30)


@sqlite_only
async def test_long_responses_are_read_in_turns(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (event_loop, client):
        monkeypatch.setattr(module, "LONG_BYTES", 10)
    request = Request(task="image", model="image-1", values={"prompt": "a pear", "size": "64x64"})
    async with open_gateway(works=False) as running:
        gate = faults.Gate()
        gateway = running.gateway
        running.lab.images.always(gate)
        option = gateway.routing.route("image-1", ("image",), OrgId("org_1")).first
        submitting = asyncio.create_task(
            rounds(lambda: gateway.upstream.submit(option, request, 1, {}, for_org=ORG), 30)
        )
        await running.lab.images.reached(30)
        gate.open()
        assert len(set(await submitting)) == 30


async def test_work_on_many_bytes_runs_in_one_other_thread_and_work_on_few_in_this_one() -> None:
    here = threading.get_ident()
    assert await run_aside(SHORT, threading.get_ident) == here
    found = await asyncio.gather(*(run_aside(LONG, threading.get_ident) for _ in range(5)))
    assert here not in found
    assert len(set(found)) == 1


async def test_an_exception_of_work_in_another_thread_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await run_aside(LONG, int, "x")


class LoopWatch:
    """Notes which functions are called in this thread, that of the event loop, to work on many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[tuple[str, int]] = []
        self._monkeypatch = monkeypatch
        self._thread = threading.get_ident()

    def __call__(self, module: Any, name: str, size: Callable[..., int]) -> None:
        """Watch a function; `size` takes its arguments and returns how many bytes it works on."""
        function = getattr(module, name)

        def watched(*arguments: Any) -> Any:
            if threading.get_ident() == self._thread and size(*arguments) > event_loop.LONG_BYTES:
                self.found.append((name, size(*arguments)))
            return function(*arguments)

        self._monkeypatch.setattr(module, name, watched)


@sqlite_only
async def test_nothing_large_that_a_provider_sends_is_read_in_the_thread_of_the_event_loop(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chats whose response lacks fields, in both APIs and as a stream, and an image that is refused for its values."""
    watch = LoopWatch(monkeypatch)
    watch(exchange, "decode_beside_base64", len)
    watch(json_decoding, "take_texts", lambda raw, *_: len(raw))
    watch(json_outline, "take_texts", lambda raw, *_: len(raw))
    watch(json_outline.Outline, "fill", lambda outline, _: len(outline._raw))
    for name in ("_decode_completion", "rename_finish_reasons", "repaired_completion"):
        watch(provider_api, name, lambda raw, *_: len(raw))
    for name in ("_decode_chunk", "_decode_head", "rename_finish_reasons"):
        watch(stream, name, lambda raw, *_: len(raw))
    text = "é" * 300_000
    message = {"role": "assistant", "content": text}
    whole = msgspec.json.encode({"choices": [{"message": message}], "usage": {"prompt_tokens": 1}})
    chunk = msgspec.json.encode({"choices": [{"index": 0, "delta": {"content": text}}]})
    async with served_api(open_gateway) as api:
        lab = api.running.lab
        lab.chats.next(faults.raw(whole), faults.raw(whole))
        assert (await api.chat()).json["choices"][0]["message"] == message
        said = (await api.call("POST", "/compat/v1/responses", {"model": "lab/chat", "input": "hi"})).json
        assert said["output"][0]["content"][0]["text"] == text
        lab.chats.next(faults.raw(b"data: %b\n\ndata: [DONE]\n\n" % chunk, "text/event-stream"))
        streamed = await api.chat(stream=True)
        assert text.encode() in streamed.body
        lab.images.next(faults.raw(b'{"data":[' + b"0," * 100_000 + b"0]}"))
        assert (await api.image()).status == 502
        await api.running.wait_until_idle()
    assert watch.found == []


@sqlite_only
async def test_nothing_large_that_a_caller_sends_is_hashed_or_decoded_in_the_thread_of_the_event_loop(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit with a large image in its body, an idempotent video with a large reference, and an import."""
    watch = LoopWatch(monkeypatch)
    watch(body, "_decode", len)
    watch(validate, "_body_digest", lambda call: call.size_bytes)
    watch(transfer, "_sha256", len)
    watch(files, "strict_pieces", len)
    watch(json_encoding, "encode", lambda _, size_bytes: size_bytes)
    for module in (fingerprints, validate):
        watch(module, "input_digest", len)
    file = io.BytesIO()
    Image.frombytes("RGB", (400, 400), random.Random(1).randbytes(480_000)).save(file, "PNG")
    large = file.getvalue()
    text = base64.b64encode(large).decode()
    uri = f"data:image/png;base64,{text}"
    async with served_api(open_gateway) as api:
        edit = {"model": "edit-1", "prompt": "x", "image": uri}
        headers = {"x-service-replay": "replay-or-record"}
        edited = await api.call("POST", "/compat/v1/images/edits", edit, headers=headers)
        assert edited.status == 200, edited.body
        video = {"input_reference": {"image_url": uri}, "idempotency_key": "k"}
        assert [(await api.video(**video)).status for _ in range(2)] == [202, 202]
        recording_id = edited.headers["x-service-replay-recording"]
        exported = (await api.call("GET", f"/v1/recordings/{recording_id}/export")).json
        exported["files"][0]["data"] = text
        exported["files"][0]["content_type"] = "image/png"
        assert (await api.call("POST", "/v1/recordings", exported)).status == 200
        parts = [{"type": "image_url", "image_url": {"url": uri}}]
        assert (await api.chat(messages=[{"role": "user", "content": parts}])).status == 200
        await api.running.wait_until_idle()
    assert watch.found == []


async def test_threads_return_results_and_exceptions_and_go_on_after_a_cancelled_caller() -> None:
    threads = LoopThreads(1, "test")
    begun, may_end = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        may_end.wait()

    waiting = threads.start(wait)
    await asyncio.get_running_loop().run_in_executor(None, begun.wait)
    next_one = threads.start(lambda: threading.current_thread().name)
    waiting.cancel()
    may_end.set()
    assert await next_one == "test-0"
    with pytest.raises(ZeroDivisionError):
        await threads.start(lambda: 1 // 0)
    assert await threads.start(max, 1, 2) == 2
    threads.stop()


async def test_threads_that_are_stopped_have_done_what_they_were_given() -> None:
    threads = LoopThreads(2, "test")
    given = [threads.start(threading.current_thread) for _ in range(9)]
    threads.stop()
    assert not any([(await thread).is_alive() for thread in given])


GROW_A_BUFFER = """
import ctypes, io, sys
from penstock.event_loop import configure_process

class Counts(ctypes.Structure):  # struct mallinfo2 of glibc
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

counts = ctypes.CDLL(None).mallinfo2
counts.restype = Counts
if sys.argv[1] == "configured":
    configure_process()
bytes(30 * 2**20)  # freed at once
before = counts().hblks
buffer = io.BytesIO(bytes(8 * 2**20))
print(counts().hblks - before, sys.getswitchinterval())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library has other rules")
@pytest.mark.parametrize(("which", "printed"), [("configured", "1 0.001"), ("default", "0 0.005")])
def test_large_buffers_are_taken_from_the_system_which_moves_them_without_a_copy(which: str, printed: str) -> None:
    command = [sys.executable, "-c", GROW_A_BUFFER, which]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert found == printed


async def test_tasks_that_miss_a_cancellation_are_cancelled_again() -> None:
    """`asyncio.wait_for` of Python 3.11 does so when its end and the cancellation coincide."""
    missed = asyncio.Event()

    async def miss_one_cancellation() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            missed.set()
        await asyncio.Event().wait()

    async def fail() -> None:
        raise ValueError("ignored")

    tasks = [
        asyncio.create_task(miss_one_cancellation()),
        asyncio.create_task(fail()),
        asyncio.create_task(asyncio.sleep(0)),
    ]
    await asyncio.sleep(0)
    await cancel_and_wait(tasks)
    assert missed.is_set()
    assert all(task.done() for task in tasks)
    await cancel_and_wait([])
