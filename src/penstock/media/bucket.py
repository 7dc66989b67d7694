"""Store files in an object store: S3 or a compatible server, Google Cloud Storage, or Azure Blob Storage."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, NotFoundError
from obstore.store import from_url

from penstock.errors import StorageUnavailable
from penstock.imaging.formats import disposition
from penstock.long_bodies.buffers import Buffer
from penstock.media.storage import CANNOT_STORE, CHUNK_BYTES, MAX_URL_SECONDS, FileExists, FileMissing, StoredFile
from penstock.store.base import StorageMisconfigured

_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_CANNOT_REACH = "The object store could not be reached."

# Options of the connection, which the library takes apart from those of the store; among those it would crash on them.
_CONNECTION_OPTIONS = frozenset(
    "allow_http allow_invalid_certificates connect_timeout default_content_type http1_only http2_keep_alive_interval "
    "http2_keep_alive_timeout http2_keep_alive_while_idle http2_max_frame_size http2_only pool_idle_timeout "
    "pool_max_idle_per_host proxy_ca_certificate proxy_excludes proxy_url randomize_addresses read_timeout timeout "
    "user_agent".split()
)
_PREFIXES = {"s3": "aws_", "gcs": "google_", "azure": "azure_"}  # that names of options may have
_ENDPOINT_OPTIONS = frozenset({"endpoint", "endpoint_url", "storage_endpoint"})


class Bucket:
    """Files in an object store."""

    def __init__(self, url: str, options: Mapping[str, str], url_endpoint: str | None = None) -> None:
        """Open the bucket at a URL. Raises StorageMisconfigured if the URL or an option cannot be used.

        `url_endpoint` is where callers reach the object store, for which URLs are signed; if it is empty, that is the
        endpoint of the options. Without it, no URLs are signed.
        """
        self._store = _open(url, options)
        self._signing_store = _open(url, options, url_endpoint) if url_endpoint else self._store
        self._signs_urls = url_endpoint is not None

    async def create(self, key: str, data: Buffer, content_type: str) -> None:
        # Some servers that speak S3 ignore or refuse the condition of a conditional write, so look first.
        if await self._exists(key):
            raise FileExists(key)
        try:
            await self._put(key, data, content_type, "create")
        except AlreadyExistsError:
            raise FileExists(key) from None
        except StorageUnavailable as error:
            if "NotImplemented" not in str(error.__cause__):
                raise
            await self._put(key, data, content_type, "overwrite")  # a server that refuses conditional writes

    async def replace(self, key: str, data: Buffer | Path, content_type: str) -> None:
        await self._put(key, data, content_type, "overwrite")

    async def _put(
        self, key: str, data: Buffer | Path, content_type: str, mode: Literal["create", "overwrite"]
    ) -> None:
        try:
            with _translate_errors():
                attributes = {"Content-Type": content_type, "Content-Disposition": disposition(content_type)}
                await obstore.put_async(self._store, key, data, attributes=attributes, mode=mode)
        except FileMissing as error:  # here it means that the bucket is missing
            raise StorageUnavailable(CANNOT_STORE) from error.__cause__

    async def copy(self, source: str, key: str) -> None:
        with _translate_errors():
            await obstore.copy_async(self._store, source, key)

    async def _exists(self, key: str) -> bool:
        with suppress(FileMissing), _translate_errors():
            await obstore.head_async(self._store, key)
            return True
        return False

    async def read(self, key: str, start: int, length: int) -> AsyncIterator[bytes]:
        if not length:
            return
        with _translate_errors():
            response, skip = await self._get_range(key, start, length)
            async for chunk in response.stream(min_chunk_size=CHUNK_BYTES):
                piece = bytes(chunk)[skip : skip + length]
                skip = max(0, skip - len(chunk))
                length -= len(piece)
                if piece:
                    yield piece
                if not length:
                    return

    async def _get_range(self, key: str, start: int, length: int) -> tuple[Any, int]:
        """Return a response that contains the range, and how many bytes come before it.

        Some servers that speak S3 do not support ranges and send the whole file.
        """
        try:
            return await obstore.get_async(self._store, key, options={"range": (start, start + length)}), 0
        except GenericError as error:
            if "NotPartial" not in str(error):
                raise
        return await obstore.get_async(self._store, key), start

    async def delete(self, key: str) -> bool:
        if not await self._exists(key):
            return False
        with _translate_errors():
            await obstore.delete_async(self._store, key)
        return True

    async def signed_url(self, key: str, seconds: int) -> str | None:
        if not self._signs_urls:
            return None
        duration = timedelta(seconds=min(seconds, MAX_URL_SECONDS))
        with _translate_errors():
            url: str = await obstore.sign_async(self._signing_store, "GET", key, duration)
        return url

    async def list_files(self) -> list[StoredFile]:
        now = time.time()
        with _translate_errors():
            return [
                StoredFile(str(item["path"]), int(item["size"]), now - item["last_modified"].timestamp())
                async for page in obstore.list(self._store)
                for item in page
            ]

    async def delete_unfinished(self, older_than_seconds: float = 0) -> None:
        """Do nothing: an object store has no half written files."""


def _open(url: str, options: Mapping[str, str], endpoint: str = "") -> Any:
    """Open an object store, at another endpoint than that of the options if one is given."""
    try:
        kind = obstore.parse_scheme(url)
        if kind not in _PREFIXES:
            raise ValueError("the URL must begin with s3://, gs:// or az://")
        config: dict[str, str] = {}
        connection: dict[str, str | bool] = {"allow_http": True}
        for name, value in options.items():
            plain = name.lower().removeprefix(_PREFIXES[kind])
            if plain in _CONNECTION_OPTIONS:
                connection[plain] = value
            elif not (endpoint and plain in _ENDPOINT_OPTIONS):
                config[name] = value
        if endpoint:
            config["endpoint"] = endpoint
        # Which options are valid depends on the kind of the store; the library checks them at run time.
        return from_url(  # type: ignore[call-overload]
            url, config=config, client_options=connection, retry_config=_RETRIES
        )
    except (BaseError, ValueError, TypeError) as problem:
        reason = str(problem).partition("\n")[0]
        raise StorageMisconfigured(f"media = {url!r} or media_options cannot be used: {reason}") from None


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the errors of the library as FileMissing or StorageUnavailable."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise FileMissing from error
    except AlreadyExistsError:
        raise
    except (BaseError, OSError) as error:
        raise StorageUnavailable(_CANNOT_REACH) from error
