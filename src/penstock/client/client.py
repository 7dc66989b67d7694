"""`penstock.Client`: images, edits, upscales, videos, speech, prices and the balance of a gateway, in plain calls."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Unpack, cast

from penstock.client import calls
from penstock.client.calls import Call, ImageFields, PricedKind, SpeechFields, VideoFields
from penstock.client.connection import Connection, Reply
from penstock.client.failures import CallFailed, GenerationFailed, NotFinished
from penstock.client.files import Input, output_paths, write_parts
from penstock.client.results import (
    Balance,
    File,
    Generation,
    Kind,
    Price,
    balance,
    generation,
    generation_path,
    price,
)
from penstock.client.retries import POLL_RETRIES, RETRIES
from penstock.environment import ENVIRONMENT

DEFAULT_URL = "http://127.0.0.1:8080"
TIMEOUT_SECONDS = 600.0

Progress = Callable[[Generation], object]


def gateway_of(url: str | None, key: str | None) -> tuple[str, str]:
    """Return the URL and the key that were given, else those of PENSTOCK_URL and PENSTOCK_KEY."""
    key = key or ENVIRONMENT.get("PENSTOCK_KEY")
    if not key:
        raise ValueError("a key is needed: give `key`, or set PENSTOCK_KEY")
    return url or ENVIRONMENT.get("PENSTOCK_URL") or DEFAULT_URL, key


class Client:
    """Calls a gateway. May be shared by threads.

    A call whose connection breaks, or that the gateway cannot serve now, is sent again; each paid call has an
    idempotency key, so that it is made and charged once. What the gateway refuses raises `Refused`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`url` and `key` are those of PENSTOCK_URL and PENSTOCK_KEY unless given; `timeout` is how many seconds may
        pass without a byte; `headers` go with every call, such as those of record and replay.
        """
        self._connection = Connection(*gateway_of(url, key), headers=headers, timeout=timeout)
        self._retries = retries

    # ---------------------------------------------------------------------------------------------- images and speech

    def image(self, prompt: str, *, model: str, **fields: Unpack[ImageFields]) -> Generation:
        """Make images from a prompt, and wait for them."""
        return self._generation(calls.image(prompt, model, fields))

    def edit(
        self,
        prompt: str,
        images: Input | Sequence[Input],
        *,
        model: str,
        mask: Input | None = None,
        **fields: Unpack[ImageFields],
    ) -> Generation:
        """Edit images, only where the mask is transparent if there is one, and wait for the result."""
        return self._generation(calls.edit(prompt, images, model, mask, fields))

    def upscale(
        self, image: Input, *, model: str, scale_factor: float | None = None, **fields: Unpack[ImageFields]
    ) -> Generation:
        """Enlarge an image, and wait for it."""
        return self._generation(calls.upscale(image, model, scale_factor, fields))

    def speech(self, text: str, *, model: str, **fields: Unpack[SpeechFields]) -> Generation:
        """Speak a text, and wait for the sound, which the gateway keeps as long as an image."""
        return self._generation(calls.speech(text, model, fields))

    def stream_speech(self, text: str, *, model: str, **fields: Unpack[SpeechFields]) -> Iterator[bytes]:
        """Speak a text, and yield the sound while it is made. The gateway keeps nothing, so this is never repeated."""
        for _, chunk in self._connection.stream(calls.streamed_speech(text, model, fields)):
            yield chunk

    # --------------------------------------------------------------------------------- what takes seconds or minutes

    def video(
        self,
        prompt: str,
        *,
        model: str,
        on_progress: Progress | None = None,
        wait_seconds: float | None = None,
        **fields: Unpack[VideoFields],
    ) -> Generation:
        """Make a video, and wait until it is complete; see `wait`."""
        started = self.start_video(prompt, model=model, **fields)
        return self.wait(started, on_progress=on_progress, wait_seconds=wait_seconds)

    def start_video(self, prompt: str, *, model: str, **fields: Unpack[VideoFields]) -> Generation:
        """Start a video, and return at once. A model that enlarges a video takes no prompt: give an empty one."""
        return self._generation(calls.video(prompt, model, fields))

    def start_image(self, prompt: str, *, model: str, **fields: Unpack[ImageFields]) -> Generation:
        """Start images, and return at once."""
        return self._generation(calls.started(calls.image(prompt, model, fields)))

    def start_speech(self, text: str, *, model: str, **fields: Unpack[SpeechFields]) -> Generation:
        """Start to speak a text of up to 100,000 characters, and return at once."""
        return self._generation(calls.started(calls.speech(text, model, fields)))

    def get(self, generation_id: str, kind: Kind = "video") -> Generation:
        """Return a generation in whatever state it is, with fresh URLs of its files."""
        return self._generation(calls.get(generation_path(generation_id, kind)))

    def wait(
        self, started: Generation, *, on_progress: Progress | None = None, wait_seconds: float | None = None
    ) -> Generation:
        """Wait until a generation is complete; `on_progress` is called with each state.

        Raises GenerationFailed, or NotFinished after `wait_seconds`. A gateway that is away for some minutes is waited
        for, because what it has accepted goes on.
        """
        deadline = None if wait_seconds is None else monotonic() + wait_seconds
        while True:
            try:
                reply = self._connection.send(calls.get(started.path), max(self._retries, POLL_RETRIES))
            except CallFailed as failure:
                failure.add_note(f"{started.id} may go on; wait for it again")
                raise
            state = generation(reply.body)
            if on_progress is not None:
                on_progress(state)
            if state.is_finished:
                return checked(state)
            if deadline is not None and monotonic() + reply.poll_seconds > deadline:
                raise NotFinished(state)
            sleep(reply.poll_seconds)

    def cancel(self, started: Generation) -> None:
        """Cancel a generation, if it is not finished yet."""
        self._send(Call("DELETE", started.path))

    # -------------------------------------------------------------------------------------------------------- files

    def download(self, file: File) -> Iterator[bytes]:
        """Yield the parts of an output as they arrive."""
        for _, chunk in self._connection.stream_file(file.url):
            yield chunk

    def read(self, file: File) -> bytes:
        """Return an output as bytes."""
        return b"".join(self.download(file))

    def save(self, made: Generation, path: str | Path) -> list[Path]:
        """Write the files of a generation, and return their paths: several get numbers before their ending."""
        paths = output_paths(made, Path(path))
        for file, each in zip(made.files, paths, strict=True):
            write_parts(self.download(file), each)
        return paths

    # ------------------------------------------------------------------------------------------------------ the account

    def price(self, kind: PricedKind, prompt: str = "", *, model: str, **fields: Any) -> Price:
        """Return what a call would cost, and make nothing. The fields are those of the call; an edit's images are
        `images`, and the image to enlarge is `image`.
        """
        call = calls.dry_run(calls.for_price(kind, prompt, model, fields))
        return price(self._send(call).body)

    def balance(self) -> Balance:
        """Return what the organization can spend."""
        return balance(self._send(calls.get("/v1/balance")).body)

    def models(self, mode: str | None = None) -> list[dict[str, Any]]:
        """List the models that can be called; `mode` is one of theirs, such as text-to-image."""
        found = self._send(calls.get("/compat/v1/models")).body["data"]
        return models_of(found, mode)

    def webhook_secret(self) -> str:
        """Return the secret that signs the webhooks of the organization, for `penstock.check_webhook`."""
        return str(self._send(calls.get("/v1/webhooks/secret")).body["key"])

    # ---------------------------------------------------------------------------------------------------------- sending

    def _generation(self, call: Call) -> Generation:
        return generation(self._send(call).body)

    def _send(self, call: Call) -> Reply:
        return self._connection.send(call, self._retries)


def checked(finished: Generation) -> Generation:
    """Return a finished generation; raise GenerationFailed if it failed."""
    if finished.status == "failed":
        raise GenerationFailed(finished)
    return finished


def models_of(found: Sequence[Mapping[str, Any]], mode: str | None) -> list[dict[str, Any]]:
    """The models of one mode, or all."""
    return [cast(dict[str, Any], model) for model in found if mode is None or mode in model.get("modes", ())]
