"""Providers that answer inside this process: start their servers and send requests to them."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any

import structlog

from penstock.imaging.child import ChildTask
from penstock.imaging.workers import WorkerPool
from penstock.net.errors import MaybeSent
from penstock.providers.spec import HttpRequest, LocalServer, LocalTools, Provider, Reply, RunTask, StreamTask
from penstock.values import OrgId

log = structlog.get_logger()


def child_tasks(providers: Iterable[Provider]) -> dict[str, ChildTask]:
    """Every child task of these providers, under the name that the worker pool knows it by."""
    return {
        _pool_name(provider, name): task
        for provider in providers
        if provider.local
        for name, task in provider.local.tasks.items()
    }


def start_servers(
    providers: Iterable[Provider], pool: WorkerPool, sound_pool: WorkerPool | None = None
) -> dict[str, LocalServer]:
    """Start a server for each provider that has one, by slug; the caller closes them. Tasks that stream run in the
    second pool.
    """
    return {
        provider.slug: provider.local.start(
            LocalTools(run=_runner(provider, pool), stream=_streamer(provider, sound_pool or pool))
        )
        for provider in providers
        if provider.local
    }


async def send(server: LocalServer, request: HttpRequest, for_org: OrgId | None) -> Reply:
    """Send a request to a local server. An exception in it is logged, and answered with status 500."""
    try:
        return await server.send(request, for_org)
    except Exception:
        log.exception("local provider failed", url=request.url)
        return Reply(500)


async def stream(server: LocalServer, request: HttpRequest, for_org: OrgId) -> AsyncGenerator[bytes, None]:
    """Stream the response of a local server. An exception in it is logged, and becomes MaybeSent."""
    try:
        async with aclosing(server.stream(request, for_org)) as chunks:
            async for chunk in chunks:
                yield chunk
    except Exception as error:
        log.exception("local provider failed", url=request.url)
        raise MaybeSent("the local provider failed") from error


def _runner(provider: Provider, pool: WorkerPool) -> RunTask:
    """Runs tasks of this provider only."""

    async def run(
        name: str, arguments: Mapping[str, Any], for_org: OrgId, progress: Callable[[float], None] | None = None
    ) -> dict[str, Any]:
        return await pool.run(_pool_name(provider, name), for_org=for_org, progress=progress, **arguments)

    return run


def _streamer(provider: Provider, pool: WorkerPool) -> StreamTask:
    """Runs tasks of this provider that stream, and take no files."""

    async def stream(name: str, arguments: Mapping[str, Any], for_org: OrgId) -> AsyncGenerator[bytes, None]:
        async with pool.stream(_pool_name(provider, name), for_org=for_org, **arguments) as child:
            while made := await child.read():
                yield made

    return stream


def _pool_name(provider: Provider, name: str) -> str:
    """The pool's own tasks have a dot in their names and no colon."""
    return f"{provider.slug}:{name}"
