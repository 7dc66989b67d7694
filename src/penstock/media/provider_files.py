"""Download the files that providers made: from their own hosts with a credential, from others by the egress rules."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urljoin

from penstock.long_bodies.buffers import Buffer
from penstock.net.checked_urls import EgressRules
from penstock.net.client import REDIRECT_STATUSES, HttpClient
from penstock.net.errors import MaybeSent, NotSent, ResponseTooLarge, UrlBlocked
from penstock.net.response import Writer
from penstock.providers.spec import HttpRequest
from penstock.upstream.urls import DownloadSource, same_origin

_MAX_REDIRECTS = 3
_READ_SECONDS = 60.0


class UnusableFile(Exception):
    """A provider's file is not an image or video of the requested kind, is too large, or has a blocked URL.

    `may_change`: the download brought an error page, nothing, or half of the file; another download may succeed.
    `too_large`: for the limits of this gateway; the provider did nothing wrong.
    """

    def __init__(self, reason: str, *, may_change: bool = False, too_large: bool = False) -> None:
        super().__init__(reason)
        self.may_change = may_change
        self.too_large = too_large


class OutputNotStored(Exception):
    """A provider's file was downloaded, but the storage failed. `may_change`: trying again may succeed."""

    may_change = True


class DownloadFailed(Exception):
    """A provider's file could not be downloaded; another try may succeed."""


# Gets a file from the provider's own host: the status, the headers, and the body unless it is written elsewhere.
GetOwn = Callable[[DownloadSource], Awaitable[tuple[int, Mapping[str, str], Buffer]]]


class ProviderFiles:
    """Downloads files. A redirect by a provider's own host is followed, without its credential to any other host."""

    def __init__(self, http_client: HttpClient, egress: EgressRules) -> None:
        self._http_client = http_client
        self._egress = egress

    async def read(self, source: DownloadSource, *, max_bytes: int, timeout_seconds: float) -> Buffer:
        """Download a file into memory. Raises UnusableFile or DownloadFailed."""

        async def send(own: DownloadSource) -> tuple[int, Mapping[str, str], Buffer]:
            request = HttpRequest("GET", own.url, own.headers)
            reply = await self._http_client.send(request, timeout_seconds=timeout_seconds, max_bytes=max_bytes)
            return reply.status, reply.headers, reply.body

        return await self._download(source, send, None, max_bytes, timeout_seconds)

    async def write(self, source: DownloadSource, writer: Writer, *, max_bytes: int, timeout_seconds: float) -> None:
        """Download a file to a writer. Raises UnusableFile or DownloadFailed, and what the writer raises."""

        async def stream(own: DownloadSource) -> tuple[int, Mapping[str, str], Buffer]:
            request = HttpRequest("GET", own.url, own.headers)
            size_bytes = 0
            async with self._http_client.stream(
                request, read_timeout_seconds=_READ_SECONDS, timeout_seconds=timeout_seconds
            ) as response:
                if response.status != 200:
                    return response.status, response.headers, b""
                async for chunk in response:
                    size_bytes += len(chunk)
                    if size_bytes > max_bytes:
                        raise ResponseTooLarge(max_bytes)
                    writer.write(chunk)
                return response.status, response.headers, b""

        await self._download(source, stream, writer, max_bytes, timeout_seconds)

    async def _download(
        self, source: DownloadSource, get_own: GetOwn, writer: Writer | None, max_bytes: int, timeout_seconds: float
    ) -> Buffer:
        try:
            status, body = await self._follow(source, get_own, writer, max_bytes, timeout_seconds)
        except UrlBlocked as error:
            raise UnusableFile("the file's URL is blocked by the egress rules") from error
        except ResponseTooLarge as error:
            raise UnusableFile("the file is too large", too_large=True) from error
        except (NotSent, MaybeSent) as error:
            raise DownloadFailed("the connection failed or was cut off") from error
        if status != 200:
            raise DownloadFailed(f"the download failed with status {status}")
        return body

    async def _follow(
        self, source: DownloadSource, get_own: GetOwn, writer: Writer | None, max_bytes: int, timeout_seconds: float
    ) -> tuple[int, Buffer]:
        """Get a file from the provider's own host or another one; return the status and, without a writer, the body."""
        status = 0
        for _ in range(_MAX_REDIRECTS + 1):
            if not source.trusted:
                response = await self._http_client.fetch(
                    source.url,
                    egress=self._egress,
                    max_bytes=max_bytes,
                    timeout_seconds=timeout_seconds,
                    max_redirects=_MAX_REDIRECTS,
                    writer=writer,
                )
                return response.status, response.body
            status, headers, body = await get_own(source)
            following = _redirect(source, status, headers)
            if following is None:
                return status, body
            source = following
        return status, b""


def _redirect(source: DownloadSource, status: int, headers: Mapping[str, str]) -> DownloadSource | None:
    """Where a response of the provider's own host sends us, or None. Raises UrlBlocked."""
    location = headers.get("location")
    if status not in REDIRECT_STATUSES or not location:
        return None
    try:
        url = urljoin(source.url, location)
        is_own = same_origin(url, source.url)
    except ValueError:
        raise UrlBlocked from None
    if source.url.startswith("https:") and not url.startswith("https:"):
        raise UrlBlocked  # an encrypted request must not become a plain one
    return DownloadSource(url, source.headers if is_own else {}, trusted=is_own)
