"""Read what callers send: uploaded files, data URIs and URLs."""

from collections.abc import Iterator

from penstock.errors import InvalidRequest, Unavailable
from penstock.event_loop import LoopTurns
from penstock.fields import UploadedFile
from penstock.long_bodies.base64_pieces import (
    STEP,
    Base64Text,
    data_uri_start,
    is_data_uri,
    strict_pieces,
    tolerant_pieces,
)
from penstock.long_bodies.buffers import Buffer, GrowingBuffer
from penstock.net.checked_urls import EgressRules
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge
from penstock.values import OrgId

_INPUT_SECONDS = 20.0
_MAX_REDIRECTS = 3


class Sources:
    """Reads files from wherever a caller says they are."""

    def __init__(self, http_client: HttpClient, egress: EgressRules) -> None:
        self._http_client = http_client
        self._egress = egress
        self._turns = LoopTurns()

    async def read(self, source: UploadedFile | str | Base64Text, param: str, max_bytes: int, for_org: OrgId) -> Buffer:
        """Return the bytes of an uploaded file, a data URI or what is behind a URL.

        Raises InvalidRequest, which names the parameter, when it cannot be had, and Unavailable when that is not the
        caller's fault.
        """
        if isinstance(source, UploadedFile):
            return source.data
        if isinstance(source, Base64Text) or is_data_uri(source):
            try:
                return await self.decode(source, strict=True)
            except ValueError:
                raise InvalidRequest(f"`{param}` has a data URI that is not base64.", param=param) from None
        try:
            response = await self._http_client.fetch(
                source,
                egress=self._egress,
                max_bytes=max_bytes,
                timeout_seconds=_INPUT_SECONDS,
                max_redirects=_MAX_REDIRECTS,
                share=for_org,
            )
        except (NotSent, MaybeSent) as error:
            if isinstance(error, NotSent) and error.local:
                raise Unavailable(f"The URL of `{param}` cannot be fetched now: {error}.") from None
            size = f" in {max_bytes} bytes" if isinstance(error, ResponseTooLarge) else ""
            raise InvalidRequest(f"`{param}` has a URL that could not be fetched{size}.", param=param) from None
        if response.status != 200:
            raise InvalidRequest(f"`{param}` has a URL that was answered with HTTP {response.status}.", param=param)
        return response.body

    async def decode(self, text: str | Base64Text, *, strict: bool = False) -> Buffer:
        """Decode base64. Raises ValueError; unless `strict`, whatever else is in it is left out."""
        if isinstance(text, Base64Text):
            await self._do_steps(text.decode(), len(text))
            if strict and not text.is_clean:
                raise ValueError("not only base64")
            return text.file
        start = data_uri_start(text) if is_data_uri(text) else 0
        try:
            return await self._join_pieces(strict_pieces(text, start), len(text) // 4 * 3)
        except ValueError:
            if strict:
                raise
            return await self._join_pieces(tolerant_pieces(text, start), len(text) // 4 * 3)

    async def _join_pieces(self, pieces: Iterator[bytes], size_bytes: int) -> bytearray:
        """Return the pieces one after the other, about so many bytes; other tasks run before each is made."""
        whole = GrowingBuffer(size_bytes)
        await self._do_steps(map(whole.write, pieces), size_bytes)
        return whole.finish()

    async def _do_steps(self, steps: Iterator[None], size_bytes: int) -> None:
        """Do work on so many bytes step by step; other tasks run before each step."""
        await self._turns.wait_turn(min(size_bytes, STEP))
        for _ in steps:
            await self._turns.wait_turn(min(size_bytes, STEP))
