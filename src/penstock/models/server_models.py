"""The chat models of self-hosted servers that take any model: asked of the server, and remembered for a while."""

import asyncio
from typing import Any

import structlog

from penstock.cache import Cache
from penstock.clock import Clock
from penstock.errors import NotFound
from penstock.models.catalog import Catalog
from penstock.upstream.candidate import Candidate
from penstock.upstream.client import Upstream
from penstock.upstream.failures import AttemptFailed

log = structlog.get_logger()
_FRESH_SECONDS = 60.0
_FAILED_SECONDS = 10.0  # how long a server that did not answer is not asked again
_ASK_SECONDS = 3.0
_SERVERS_MAX = 256


class ServerModels:
    """The models of vLLM, llama.cpp and Ollama, as far as these servers are configured and answer."""

    def __init__(self, catalog: Catalog, upstream: Upstream, clock: Clock) -> None:
        self._catalog = catalog
        self._upstream = upstream
        self._names: Cache[str, list[str]] = Cache(clock.monotonic, _SERVERS_MAX)
        self._locks: dict[str, asyncio.Lock] = {}

    async def describe_all(self, schema: bool = False) -> list[dict[str, Any]]:
        """All models of these servers, as the model list shows them; those of a server that is down are missing."""
        servers = self._catalog.any_model_servers()
        names = await asyncio.gather(*(self._names_of(server) for server in servers))
        return [
            self._catalog.describe_server_model(server, name, schema)
            for server, found in zip(servers, names, strict=True)
            for name in found
        ]

    async def describe(self, model: str, schema: bool = False) -> dict[str, Any]:
        """One model, of the catalog or of a server. Raises NotFound."""
        try:
            return self._catalog.describe(model, schema)
        except NotFound:
            slug, _, name = model.partition("/")
            for server in self._catalog.any_model_servers():
                if server.provider.slug == slug and name in await self._names_of(server):
                    return self._catalog.describe_server_model(server, name, schema)
            raise

    async def _names_of(self, server: Candidate) -> list[str]:
        slug = server.provider.slug
        async with self._locks.setdefault(slug, asyncio.Lock()):
            names = self._names.get(slug)
            if names is None:
                try:
                    names = await self._upstream.read_list(server, "GET /v1/models", _read_names, seconds=_ASK_SECONDS)
                    self._names.put(slug, names, _FRESH_SECONDS)
                except AttemptFailed as problem:
                    log.info("models not listed", provider=slug, reason=problem.failure.message)
                    names = []
                    self._names.put(slug, names, _FAILED_SECONDS)
            return names


def _read_names(fields: Any) -> list[str]:
    return [model["id"] for model in fields["data"] if isinstance(model["id"], str)]
