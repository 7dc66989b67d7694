"""Upload input files to a provider: images before a job is submitted, a video to a job that was created for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from penstock.net.checked_urls import EgressRules
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.providers.spec import HttpRequest, ImageUpload, Reply, VideoUpload
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, unknown_outcome
from penstock.upstream.urls import same_origin
from penstock.values import INPUT_VIDEOS, InputFile


class Step(Protocol):
    """Sends a request that belongs to a job, and applies a function to the reply. Raises NotSent, MaybeSent, and
    AttemptFailed for HTTP errors and malformed replies.
    """

    async def __call__(
        self, template: str, ref: Mapping[str, str], read: Callable[[Reply], str], *, form: Any = (), body: Any = None
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class Uploads:
    """Uploads for one candidate."""

    candidate: Candidate
    step: Step

    async def upload_images(
        self, upload: ImageUpload, inputs: Mapping[str, Sequence[InputFile]]
    ) -> dict[str, list[InputFile]]:
        """The inputs with the names that the provider gave them. Raises AttemptFailed."""
        return {role: [await self._upload_image(upload, image) for image in images] for role, images in inputs.items()}

    async def _upload_image(self, upload: ImageUpload, image: InputFile) -> InputFile:
        try:
            name = await self.step(upload.send, {}, upload.read, form=upload.form(image))
        except (NotSent, MaybeSent):  # the image may have arrived, but no job was submitted
            raise self._not_accepted("image") from None
        return replace(image, uploaded_name=name)

    async def start_with_video(
        self,
        upload: VideoUpload,
        ref: Mapping[str, str],
        inputs: Mapping[str, Sequence[InputFile]],
        put: Callable[[str, InputFile], Awaitable[str]],
        cancel: Callable[[], Awaitable[bool]],
    ) -> None:
        """Upload the video of a new job with `put`, which returns its ETag, and start the job.

        A job that could not be started is cancelled. Raises AttemptFailed, with an unknown outcome if it may have
        started.
        """
        (video,) = (file for name in INPUT_VIDEOS for file in inputs.get(name, ()))
        was_told_to_start = False
        try:
            etag = await put(await self.step(upload.prepare, ref, upload.read_url), video)
            was_told_to_start = True
            await self.step(upload.start, ref, lambda reply: "", body=upload.start_body(etag))
        except AttemptFailed:
            await cancel()
            raise
        except (NotSent, MaybeSent) as problem:
            is_cancelled = await cancel()
            if was_told_to_start and isinstance(problem, MaybeSent) and not is_cancelled:
                message = f"{self.candidate.provider.name} did not say whether it started the job."
                raise AttemptFailed(unknown_outcome(message, timed_out=problem.timeout)) from None
            raise self._not_accepted("video") from None

    def _not_accepted(self, kind: str) -> AttemptFailed:
        message = f"{self.candidate.provider.name} did not accept an input {kind}."
        return AttemptFailed(Failure("unsent", message, sent=False))


async def put_file(
    http: HttpClient, base_url: str, url: str, file: InputFile, *, egress: EgressRules, seconds: float
) -> Reply:
    """PUT a file to a URL that the provider named, without its credential. The egress rules apply to other hosts than
    the provider's. Raises NotSent or MaybeSent.
    """
    headers = {"content-type": file.content_type}
    data = bytes(file.data)
    request = HttpRequest("PUT", url, headers, data)
    if same_origin(url, base_url):
        return await http.send(request, timeout_seconds=seconds)
    return await http.send_guarded(request, timeout_seconds=seconds, egress=egress)
