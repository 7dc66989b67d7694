"""What calls return: generations with their files and costs, prices, and the balance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, cast

Kind = Literal["image", "video", "sound"]
Status = Literal["queued", "in_progress", "completed", "failed"]

_PATHS: Mapping[Kind, str] = {
    "image": "/compat/v1/images",
    "video": "/compat/v1/videos",
    "sound": "/compat/v1/audio/generations",
}
_KINDS: Mapping[str, Kind] = {"video": "video", "audio": "sound", "audio.speech": "sound"}


@dataclass(frozen=True, slots=True)
class File:
    """An output. Its URL is signed and works for a while."""

    url: str = field(repr=False)
    content_type: str | None = None
    size_bytes: int | None = None
    revised_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """Images, a video or a sound, in whatever state. Amounts are US dollars."""

    id: str
    kind: Kind
    status: Status
    model: str
    executed_model: str | None  # who made it, as provider/model
    progress: int  # percent
    files: tuple[File, ...]
    cost: Decimal | None  # once it is completed
    cost_estimate: Decimal | None  # before that, where it is known
    error_code: str | None
    error_message: str | None
    size: str | None  # WIDTHxHEIGHT
    body: Mapping[str, Any] = field(repr=False)  # all that the gateway said

    @property
    def is_finished(self) -> bool:
        return self.status in ("completed", "failed")

    @property
    def path(self) -> str:
        """Where the gateway has it."""
        return generation_path(self.id, self.kind)


@dataclass(frozen=True, slots=True)
class Price:
    """What a call would cost at most, in US dollars, and how the price is made up."""

    total: Decimal
    model: str
    body: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Balance:
    """What the organization can spend, in US dollars; None if it pays afterwards."""

    available: Decimal | None
    billing_type: Literal["prepaid", "postpaid"]
    body: Mapping[str, Any] = field(repr=False)


def generation_path(generation_id: str, kind: Kind) -> str:
    """Where the gateway has a generation. Raises ValueError for what is no id, which could be the path of anything."""
    if not generation_id.isascii() or not generation_id.replace("_", "").isalnum():
        raise ValueError(f"the id of a generation is needed, not {generation_id!r}")
    return f"{_PATHS[kind]}/{generation_id}"


def generation(body: Mapping[str, Any]) -> Generation:
    """Read any response about a generation: images, the state of images, a video, a sound, or speech in JSON."""
    metadata = body.get("metadata") or {}
    error = body.get("error") or {}
    outputs = body.get("data") or body.get("outputs") or ([body["output"]] if body.get("output") else ())
    return Generation(
        id=str(body["id"]),
        kind=_KINDS.get(body.get("object", ""), "image"),
        status=cast(Status, body.get("status", "completed")),  # images that were waited for are complete
        model=str(body.get("model") or metadata.get("model", "")),
        executed_model=metadata.get("executed_model"),
        progress=int(body.get("progress") or (100 if outputs else 0)),
        files=_files(outputs),
        cost=_amount(metadata.get("cost")),
        cost_estimate=_amount(metadata.get("cost_estimate")),
        error_code=error.get("code"),
        error_message=error.get("message"),
        size=body.get("size"),
        body=body,
    )


def price(body: Mapping[str, Any]) -> Price:
    return Price(Decimal(body["total_cost_micros"]) / 1_000_000, str(body["model"]), body)


def balance(body: Mapping[str, Any]) -> Balance:
    return Balance(_amount(body["available"]["amount"]), body["billing_type"], body)


def _files(outputs: Sequence[Mapping[str, Any]]) -> tuple[File, ...]:
    return tuple(
        File(str(each["url"]), each.get("content_type"), each.get("size_bytes"), each.get("revised_prompt"))
        for each in outputs
        if "url" in each
    )


def _amount(number: float | None) -> Decimal | None:
    """An amount of JSON, exactly as it was written."""
    return None if number is None else Decimal(str(number))
