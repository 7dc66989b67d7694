"""Keep, carry over or add the Content Credentials of an output when it is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from penstock import __version__
from penstock.clock import Clock
from penstock.failpoints import failpoint
from penstock.imaging.child import ChildTask
from penstock.imaging.formats import OutputFormat
from penstock.imaging.marks import VIDEO_HEAD_BYTES, Marks, find_marks
from penstock.imaging.messages import Signed
from penstock.imaging.sniff import sniff
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.long_bodies.buffers import Buffer
from penstock.net.client import HttpClient
from penstock.provenance.command import SignerFailed
from penstock.provenance.signing import Signing
from penstock.provenance.statement import source_type
from penstock.provenance.statuses import GOOD_STATUSES
from penstock.provenance.time_stamps import NotStamped, TimeStamps
from penstock.schema import ContentCredentials, Provenance, Request, VendorSeal
from penstock.settings import Settings
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.tracing import span
from penstock.values import INPUT_VIDEOS, OrgId, iso

log = structlog.get_logger()

_IN_CHILD = "penstock.provenance.seal"
TASKS: Mapping[str, ChildTask] = {
    "provenance.seal": ChildTask(f"{_IN_CHILD}:seal_image", 30, 90, signs=True),
    "provenance.seal_svg": ChildTask(f"{_IN_CHILD}:seal_svg", 30, 90, signs=True),
    "provenance.seal_video": ChildTask(f"{_IN_CHILD}:seal_file", 30, 90, signs=True, long=True),
    "provenance.read": ChildTask(f"{_IN_CHILD}:read_file", 30, 90),
    "provenance.archive": ChildTask(f"{_IN_CHILD}:archive_input", 30, 90),
}
INPUT_ARCHIVES_BYTES_MAX = 1_000_000  # in one seal
INPUTS_MAX = 10
SEALED_TYPES = frozenset(
    {"image/png", "image/jpeg", "image/webp", "image/avif", "image/gif", "video/mp4", "video/quicktime"}
)


class NotSealed(Exception):
    """An output has no credentials although its caller requires them; the message says why. `may_change`: sealing
    failed, and may succeed when it is tried again.
    """

    def __init__(self, status: str) -> None:
        super().__init__(f"the status of its Content Credentials is `{status}`")
        self.may_change = status == "failed"


class Origin(msgspec.Struct, frozen=True):
    """Who made an output, as its seal tells."""

    request_id: str
    model: str
    executed_model: str
    provider: str
    is_model: bool = True  # false for a program, such as the built-in renderers
    is_mock: bool = False


class SealedImage(msgspec.Struct, frozen=True):
    """An image as it is stored."""

    data: Buffer
    content_type: str
    width: int
    height: int

    def with_data(self, data: Buffer) -> SealedImage:
        return msgspec.structs.replace(self, data=data)


class Sealer:
    """Applies the policy of a request to its outputs."""

    def __init__(
        self,
        pool: WorkerPool,
        clock: Clock,
        metrics: Metrics,
        signing: Signing | None,
        *,
        video_bytes: int,
        stamps: TimeStamps | None = None,
        gateway_url: str = "",
        aigc_producer: str = "",
    ) -> None:
        """Without `signing`, marks are only found. A video of more than `video_bytes` is not sealed. With `stamps`, a
        signature gets a time-stamp, or fails.
        """
        self._stamps = stamps
        self._pool = pool
        self._clock = clock
        self._metrics = metrics
        self.signing = signing
        self._video_bytes = video_bytes
        self._gateway_url = gateway_url
        self._aigc_producer = aigc_producer

    async def seal_image(
        self,
        data: Buffer,
        content_type: str,
        conversion: tuple[OutputFormat, int] | None,
        request: Request,
        origin: Origin,
        *,
        for_org: OrgId,
    ) -> tuple[SealedImage | None, ContentCredentials | None]:
        """Convert an image and seal it, in one step. Without a policy, nothing is done and nothing is told.

        Returns None instead of an image if neither is to be done here: the file stays as it is, or is converted
        without the seal that it had. Raises WorkFailed if it cannot be converted, and NotSealed.
        """
        policy = request.provenance
        if policy is None or policy.mode == "off":
            return None, None
        marks = find_marks(data)
        if not self._needs_child(policy, marks, is_converted=conversion is not None):
            status = "none" if not marks.c2pa_bytes else "removed" if conversion else "kept"
            return None, self._checked(policy, request.task, _untouched(status, marks))
        if content_type not in SEALED_TYPES and conversion is None:
            return None, self._checked(policy, request.task, ContentCredentials("unsupported_format"))
        plan = self._plan(policy, marks, request, origin)
        arguments: dict[str, Any] = {"content_type": content_type, "plan": plan, "conversion": conversion}
        try:
            with span("seal"):
                made = await self._pool.run("provenance.seal", for_org=for_org, sign=self._sign, data=data, **arguments)
        except WorkFailed as error:
            if error.kind == "refused":
                raise
            return None, self._checked(policy, request.task, self._failed(f"{error.kind}: {error.message}", origin))
        credentials = self._checked(policy, request.task, self._told(made, marks, request, origin))
        return SealedImage(made["data"], made["content_type"], made["width"], made["height"]), credentials

    async def seal_svg(
        self, data: Buffer, request: Request, origin: Origin, *, for_org: OrgId
    ) -> tuple[SealedImage | None, ContentCredentials | None]:
        """Clean a vector image and seal it, in one step; its provider's seal becomes the parent.

        Returns None instead of an image if it is not cleaned here. Raises WorkFailed if it cannot be cleaned, and
        NotSealed.
        """
        policy = request.provenance
        if policy is None or policy.mode == "off":
            return None, None
        marks = find_marks(data)
        if not self._needs_child(policy, marks, is_converted=True):
            status = "removed" if marks.c2pa_bytes else "none"
            return None, self._checked(policy, request.task, _untouched(status, marks))
        plan = self._plan(policy, marks, request, origin)
        made = await self._pool.run("provenance.seal_svg", for_org=for_org, sign=self._sign, data=data, plan=plan)
        credentials = self._checked(policy, request.task, self._told(made, marks, request, origin))
        return SealedImage(made["data"], made["content_type"], made["width"], made["height"]), credentials

    async def seal_video(
        self,
        head: Buffer,
        size_bytes: int,
        content_type: str,
        load: Callable[[], Awaitable[Buffer]],
        request: Request,
        origin: Origin,
        *,
        for_org: OrgId,
    ) -> tuple[Buffer | None, ContentCredentials | None]:
        """Seal a video; `head` is its beginning, and `load` reads all of it.

        Returns None instead of the video if it stays as it is. Raises NotSealed.
        """
        policy = request.provenance
        if policy is None or policy.mode == "off":
            return None, None
        marks = find_marks(head[:VIDEO_HEAD_BYTES])
        if not self._needs_child(policy, marks, is_converted=False):
            return None, self._checked(policy, request.task, _untouched("kept" if marks.c2pa_bytes else "none", marks))
        if content_type not in SEALED_TYPES:
            return None, self._checked(policy, request.task, ContentCredentials("unsupported_format"))
        if size_bytes > self._video_bytes:
            return None, self._checked(
                policy, request.task, _untouched("kept" if marks.c2pa_bytes else "too_large", marks)
            )
        plan = self._plan(policy, marks, request, origin)
        try:
            with span("seal"):
                made = await self._pool.run(
                    "provenance.seal_video",
                    for_org=for_org,
                    sign=self._sign,
                    load=load,
                    content_type=content_type,
                    plan=plan,
                )
        except WorkFailed as error:
            return None, self._checked(policy, request.task, self._failed(f"{error.kind}: {error.message}", origin))
        credentials = self._checked(policy, request.task, self._told(made, marks, request, origin))
        changed = credentials.status in ("signed", "carried")
        return (made["data"] if changed else None), credentials

    async def archive_input(self, data: Buffer, number: int, *, for_org: OrgId) -> bytes | None:
        """What the Content Credentials of an input say, in the form in which a seal repeats them; empty if they do not
        hold or are too large, None if there are none.
        """
        found = sniff(data)
        if self.signing is None or found is None or not find_marks(data).c2pa_bytes:
            return None
        try:
            made = await self._pool.run(
                "provenance.archive",
                for_org=for_org,
                data=data,
                content_type=found.content_type,
                number=number,
                anchors=self.signing.anchors,
            )
        except WorkFailed as error:
            log.warning("credentials of an input not read", reason=f"{error.kind}: {error.message}"[:300])
            return b""
        archive: bytes = made["archive"]
        return archive

    def signs(self, request: Request) -> bool:
        """Whether the outputs of a request are to be signed."""
        return self.signing is not None and request.provenance is not None and request.provenance.mode == "sign"

    def check(self, request: Request, status: str) -> ContentCredentials | None:
        """Count an output, and raise NotSealed if it has no credentials although the request requires them."""
        if request.provenance is None or request.provenance.mode == "off":
            return None
        return self._checked(request.provenance, request.task, ContentCredentials(status))

    def _needs_child(self, policy: Provenance, marks: Marks, *, is_converted: bool) -> bool:
        if self.signing is None:
            return False
        # A seal that stays as it is need not be read, unless the caller requires one that holds.
        is_read = marks.c2pa_bytes > 0 and (is_converted or policy.required)
        return policy.mode == "sign" or (policy.mode == "keep" and is_read)

    def _plan(self, policy: Provenance, marks: Marks, request: Request, origin: Origin) -> dict[str, Any]:
        """What the child process is told."""
        assert self.signing is not None, "without a signer nothing is sealed"
        with_video = any(item.role in INPUT_VIDEOS for item in request.inputs)
        when = iso(self._clock.now_ms())
        said = {
            "request_id": origin.request_id,
            "model": origin.model,
            "executed_model": origin.executed_model,
            "provider": origin.provider,
            "created_at": when,
            "origin": "mocked" if origin.is_mock else "live",
        }
        if self._gateway_url:
            said["gateway"] = self._gateway_url
        if policy.prompt:
            said["prompt"] = str(request.values.get("prompt", ""))
        kind = source_type(request.task, with_video=with_video, is_model=origin.is_model and not origin.is_mock)
        facts = {
            "version": __version__,
            "source_type": kind,
            "when": when,
            "request": said,
            "aigc_producer": self._aigc_producer,
        }
        return {
            "mode": policy.mode,
            "has_seal": marks.c2pa_bytes > 0,
            "signer": self.signing.for_child(),
            "facts": facts,
            "inputs": _archives(request),
        }

    def unsealed(self, request: Request) -> ContentCredentials | None:
        """What is told of an output whose kind is never sealed, such as sound."""
        policy = request.provenance
        if policy is None or policy.mode == "off":
            return None
        return self._checked(policy, request.task, ContentCredentials("unsupported_format"))

    async def _sign(self, data: bytes) -> Signed | None:
        """Answer a child that seals; nothing is signed with a certificate that has expired."""
        signing = self.signing
        if signing is None or not signing.is_valid(datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)):
            return None
        failpoint("seal.before_sign")
        try:
            signature = Signed(await signing.signature(data))
            if self._stamps is not None:
                signature.stamp = await self._stamps.stamp(data, signature, signing.algorithm)
        except (SignerFailed, NotStamped) as problem:
            log.warning("signer failed", reason=str(problem))
            return None
        failpoint("seal.after_sign")
        return signature

    def _told(self, made: dict[str, Any], marks: Marks, request: Request, origin: Origin) -> ContentCredentials:
        if made["status"] == "failed":
            return self._failed(made.get("reason", ""), origin)
        vendor = made.get("vendor")
        return ContentCredentials(
            status=made["status"],
            signer=made.get("signer"),
            trusted=made.get("trusted"),
            manifest=made.get("manifest"),
            digital_source_type=made.get("digital_source_type") or marks.digital_source_type,
            vendor=VendorSeal(vendor["signer"], vendor["state"]) if vendor else None,
            inputs_left_out=_left_out(request) if made["status"] == "signed" else 0,
        )

    def _failed(self, reason: str, origin: Origin) -> ContentCredentials:
        log.warning("output not sealed", request_id=origin.request_id, reason=reason[:300])
        return ContentCredentials("failed")

    def _checked(self, policy: Provenance, task: str, credentials: ContentCredentials) -> ContentCredentials:
        self._metrics.count_output(task, credentials.status)
        if policy.required and credentials.status not in GOOD_STATUSES:
            raise NotSealed(credentials.status)
        return credentials


def open_sealer(
    pool: WorkerPool,
    clock: Clock,
    metrics: Metrics,
    signing: Signing | None,
    http_client: HttpClient,
    settings: Settings,
) -> Sealer:
    """The sealer that the settings ask for."""
    url = settings.provenance_timestamp_url
    return Sealer(
        pool,
        clock,
        metrics,
        signing,
        video_bytes=settings.provenance_video_bytes,
        stamps=TimeStamps(http_client, url) if url else None,
        gateway_url=settings.base_url if settings.provenance_name_gateway else "",
        aigc_producer=settings.provenance_aigc_producer,
    )


def _archives(request: Request) -> list[tuple[int, bytes]]:
    """The numbers and archives of the inputs whose credentials a seal repeats; the first ones of too many."""
    unused = INPUT_ARCHIVES_BYTES_MAX
    kept: list[tuple[int, bytes]] = []
    for number, item in enumerate(request.inputs, 1):
        if item.credentials and len(item.credentials) <= unused and len(kept) < INPUTS_MAX:
            unused -= len(item.credentials)
            kept.append((number, item.credentials))
    return kept


def _left_out(request: Request) -> int:
    """How many inputs have credentials that a seal does not repeat."""
    return sum(item.credentials is not None for item in request.inputs) - len(_archives(request))


def _untouched(status: str, marks: Marks) -> ContentCredentials:
    return ContentCredentials(status, digital_source_type=marks.digital_source_type)
