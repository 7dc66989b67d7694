"""Have guards read a chat call before it is sent, and its answer before its caller gets it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.chat.answer_texts import streamed_text, whole_text
from penstock.chat.pricing import Bill
from penstock.chat.request import ChatRequest
from penstock.chat.reserved import ReservedCall, ReservedChat
from penstock.errors import OutputRefused, Unavailable
from penstock.event_loop import run_aside
from penstock.gateway import Gateway
from penstock.guards.configured import Guard
from penstock.guards.texts import NAMES, joined
from penstock.guards.verdicts import Asked, describe
from penstock.schema import Call
from penstock.upstream.candidate import Candidate

TASK = "chat"
# The fields that a model reads, of a chat call and of a call of the Responses API.
_READ = ("instructions", "input", "messages", "tools", "functions", "response_format", "text", "prediction", "prompt")


def asked_text(chat: ChatRequest) -> str:
    """Everything in a call that a model reads as text."""
    written = chat.responses.body if chat.responses else chat.body
    texts = joined(*(written.get(name) for name in _READ), skipped=NAMES), joined(chat.extras)
    return "\n".join(filter(None, texts))


async def check_call(gateway: Gateway, call: Call, chat: ChatRequest, labels: Mapping[str, str]) -> None:
    """Have the guards read a call. Raises CallRefused and Unavailable."""
    if not call.is_guard and gateway.guards.watching(TASK, call.caller.org_id):
        text = await run_aside(chat.size_bytes, asked_text, chat)
        user = chat.body.get("user")
        has_images = bool(chat.images)
        await gateway.guards.check(
            asked_of(call), TASK, chat.model, text, has_images=has_images, labels=labels, user=user
        )


def asked_of(call: Call) -> Asked:
    """What guards are told of a call."""
    return Asked(call.id, call.caller.org_id, call.caller.key_id)


def readers(gateway: Gateway, call: Call, chat: ChatRequest) -> list[Guard]:
    """The guards that read the answer to a call before its caller does."""
    if call.is_guard:
        return []
    return gateway.guards.reading(TASK, call.caller.org_id, is_stream=chat.stream, call_id=call.id)


async def check_answer(
    reserved: ReservedChat, answer: bytes | bytearray, bill: Bill, candidate: Candidate | None
) -> None:
    """Return if the caller may get an answer, as it would get it; otherwise settle the call and raise the problem."""
    chat = reserved.chat
    guards = readers(reserved.gateway, reserved.reservation.call, chat)
    if guards:
        read = streamed_text if chat.stream else whole_text
        text = await run_aside(len(answer), read, answer)
        asked = await run_aside(chat.size_bytes, asked_text, chat)
        await check_text(reserved, guards, asked, text, bill, candidate)


async def check_text(
    reserved: ReservedCall, guards: list[Guard], asked: str, text: str, bill: Bill, candidate: Candidate | None
) -> None:
    """Return if the caller of a chat or of a transcription may get a text; otherwise settle the call and raise
    OutputRefused or Unavailable. What the provider bills for a refused text is charged if the guard says so.
    """
    request = reserved.reservation.request
    question: dict[str, Any] = describe(request.task, request.model, asked, request.labels, request.values.get("user"))
    try:
        await reserved.gateway.guards.check_text(guards, asked_of(reserved.reservation.call), question, text)
    except (OutputRefused, Unavailable) as problem:
        is_charged = problem.charges_outputs
        if not is_charged:
            reserved.losses.append(bill.cost)
        size = len(msgspec.json.encode(problem.body()))
        charged = bill if is_charged else None
        reserved.settle("upstream_failure", candidate=candidate, bill=charged, response_bytes=size, problem=problem)
        raise
