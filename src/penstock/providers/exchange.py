"""What goes to a provider and what comes back: an HTTP request, its reply, and the result that a reply is read as."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from penstock.errors import without_frames
from penstock.long_bodies.base64_pieces import Base64Text
from penstock.long_bodies.buffers import Buffer
from penstock.long_bodies.json_decoding import decode_beside_base64
from penstock.long_bodies.long_body import LongBody, StreamedBody

FailureKind = Literal["rejected", "refused", "busy", "down", "unsent", "broken", "timeout", "unreadable", "unfetched"]

# ------------------------------------------------------------------------------------------------- request and response


class NotSigned(Exception):
    """A request cannot be signed now, because no credential is found; the message says why to operators."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file part of a multipart form."""

    data: Buffer
    content_type: str
    filename: str


class HttpRequest(msgspec.Struct, frozen=True):
    """A complete HTTP request to a provider."""

    method: str
    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | LongBody | StreamedBody = b""
    form: tuple[tuple[str, str | Upload], ...] = ()  # a multipart form, sent instead of the body

    @property
    def whole_body(self) -> bytes:
        """The body as one piece; of none that is streamed."""
        assert not isinstance(self.body, StreamedBody), "only files of outputs are streamed"
        return bytes(self.body)


@dataclass(slots=True)
class Reply:
    """A provider's HTTP response with its whole body; header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | bytearray = b""
    # The decoded body, or why it cannot be decoded: a large one is decoded once in any case.
    _decoded: tuple[Any, Exception | None] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def json(self) -> Any:
        """The decoded body; raises msgspec.DecodeError if it is not JSON, and ValueError if it has too many values.

        A file in base64 that is longer than 256 KiB is a Base64Text, for `File.data`.
        """
        value, error = self._decoded or self._decode()
        if error is not None:
            raise type(error)(*error.args)  # a copy: this reply and the frames of the error must not keep each other
        return value

    def decode(self) -> None:
        """Decode a body that may be JSON now instead of when `json` is first read; says nothing if it is malformed."""
        if self._decoded is None and self.body[:1] in (b"{", b"["):
            self._decode()

    def _decode(self) -> tuple[Any, Exception | None]:
        try:
            self._decoded = decode_beside_base64(self.body), None
        except (ValueError, RecursionError) as error:
            self._decoded = None, without_frames(error)
        return self._decoded


# -------------------------------------------------------------------------------------------------------------- result


class File(msgspec.Struct, frozen=True):
    """One produced image, video or sound: its URL or its bytes."""

    url: str | None = None
    data: Buffer | str | Base64Text | None = None  # bytes, or base64: a short or a long text
    content_type: str | None = None
    revised_prompt: str | None = None
    lyrics: str | None = None  # of a song, if the model wrote them
    private: bool = False  # the download needs the provider's credential


Status = Literal["queued", "in_progress", "completed", "failed", "cancelled"]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's response in the gateway's terms."""

    status: Status = "completed"
    files: tuple[File, ...] = ()
    # Values for the {names} in `poll`, `fetch` and `cancel`. Perhaps `cost_usd` as well: what the provider said that it
    # charges, when it accepted the job.
    ref: Mapping[str, str] = msgspec.field(default_factory=dict)
    upstream_id: str | None = None
    failure_kind: FailureKind = "broken"  # used if the status is `failed`; after `refused` no other provider is tried
    message: str | None = None
    cost_usd: str | None = None  # what the provider reports that it charged; replaces our own calculation
    # Billable quantities that it reports, by name. `billed`: how many units of the price it says it charges for.
    usage: Mapping[str, int | float] = msgspec.field(default_factory=dict)
    progress: float | None = None
    poll_after_seconds: float | None = None

    @property
    def done(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")
