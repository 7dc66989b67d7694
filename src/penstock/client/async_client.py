"""`penstock.AsyncClient`: the calls of `penstock.Client`, for programs with an event loop."""

from asyncio import sleep
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from time import monotonic
from typing import Any, Self, Unpack

from penstock.client import calls
from penstock.client.async_connection import AsyncConnection
from penstock.client.calls import Call, ImageFields, PricedKind, SpeechFields, VideoFields
from penstock.client.client import TIMEOUT_SECONDS, Progress, checked, gateway_of, models_of
from penstock.client.connection import Reply
from penstock.client.failures import CallFailed, NotFinished
from penstock.client.files import FileWriter, Input, output_paths
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


class AsyncClient:
    """Calls a gateway from an event loop; every call means what it does in `Client`.

    Close it, or use it as a context: it keeps connections. It goes to the gateway directly, through no proxy.
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
        self._connection = AsyncConnection(*gateway_of(url, key), headers=headers, timeout=timeout)
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._connection.close()

    # ---------------------------------------------------------------------------------------------- images and speech

    async def image(self, prompt: str, *, model: str, **fields: Unpack[ImageFields]) -> Generation:
        return await self._generation(calls.image(prompt, model, fields))

    async def edit(
        self,
        prompt: str,
        images: Input | Sequence[Input],
        *,
        model: str,
        mask: Input | None = None,
        **fields: Unpack[ImageFields],
    ) -> Generation:
        return await self._generation(calls.edit(prompt, images, model, mask, fields))

    async def upscale(
        self, image: Input, *, model: str, scale_factor: float | None = None, **fields: Unpack[ImageFields]
    ) -> Generation:
        return await self._generation(calls.upscale(image, model, scale_factor, fields))

    async def speech(self, text: str, *, model: str, **fields: Unpack[SpeechFields]) -> Generation:
        return await self._generation(calls.speech(text, model, fields))

    async def stream_speech(
        self, text: str, *, model: str, **fields: Unpack[SpeechFields]
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._connection.stream(calls.streamed_speech(text, model, fields))) as chunks:
            async for chunk in chunks:
                yield chunk

    # ----------------------------------------------------------------------------------- what takes seconds or minutes

    async def video(
        self,
        prompt: str,
        *,
        model: str,
        on_progress: Progress | None = None,
        wait_seconds: float | None = None,
        **fields: Unpack[VideoFields],
    ) -> Generation:
        started = await self.start_video(prompt, model=model, **fields)
        return await self.wait(started, on_progress=on_progress, wait_seconds=wait_seconds)

    async def start_video(self, prompt: str, *, model: str, **fields: Unpack[VideoFields]) -> Generation:
        return await self._generation(calls.video(prompt, model, fields))

    async def start_image(self, prompt: str, *, model: str, **fields: Unpack[ImageFields]) -> Generation:
        return await self._generation(calls.started(calls.image(prompt, model, fields)))

    async def start_speech(self, text: str, *, model: str, **fields: Unpack[SpeechFields]) -> Generation:
        return await self._generation(calls.started(calls.speech(text, model, fields)))

    async def get(self, generation_id: str, kind: Kind = "video") -> Generation:
        return await self._generation(calls.get(generation_path(generation_id, kind)))

    async def wait(
        self, started: Generation, *, on_progress: Progress | None = None, wait_seconds: float | None = None
    ) -> Generation:
        deadline = None if wait_seconds is None else monotonic() + wait_seconds
        while True:
            try:
                reply = await self._connection.send(calls.get(started.path), max(self._retries, POLL_RETRIES))
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
            await sleep(reply.poll_seconds)

    async def cancel(self, started: Generation) -> None:
        await self._send(Call("DELETE", started.path))

    # -------------------------------------------------------------------------------------------------------- files

    async def download(self, file: File) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._connection.stream_file(file.url)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def read(self, file: File) -> bytes:
        return b"".join([chunk async for chunk in self.download(file)])

    async def save(self, made: Generation, path: str | Path) -> list[Path]:
        paths = output_paths(made, Path(path))
        for file, each in zip(made.files, paths, strict=True):
            with FileWriter(each) as writer:
                async for chunk in self.download(file):
                    writer.write(chunk)
        return paths

    # ------------------------------------------------------------------------------------------------------ the account

    async def price(self, kind: PricedKind, prompt: str = "", *, model: str, **fields: Any) -> Price:
        call = calls.dry_run(calls.for_price(kind, prompt, model, fields))
        return price((await self._send(call)).body)

    async def balance(self) -> Balance:
        return balance((await self._send(calls.get("/v1/balance"))).body)

    async def models(self, mode: str | None = None) -> list[dict[str, Any]]:
        return models_of((await self._send(calls.get("/compat/v1/models"))).body["data"], mode)

    async def webhook_secret(self) -> str:
        return str((await self._send(calls.get("/v1/webhooks/secret"))).body["key"])

    # ---------------------------------------------------------------------------------------------------------- sending

    async def _generation(self, call: Call) -> Generation:
        return generation((await self._send(call)).body)

    async def _send(self, call: Call) -> Reply:
        return await self._connection.send(call, self._retries)
