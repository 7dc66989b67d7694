"""Providers inside this process: what they offer to the gateway, and what they may use of it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.imaging.child import ChildTask
from penstock.providers.exchange import HttpRequest, Reply
from penstock.values import OrgId


class LocalServer(Protocol):
    """Answers a provider's requests inside this process, where other providers have an HTTP server.

    `for_org` is the organization whose request it is, for the tasks that it runs; None for polls and cancellations.
    """

    async def send(self, request: HttpRequest, for_org: OrgId | None) -> Reply: ...
    def stream(self, request: HttpRequest, for_org: OrgId) -> AsyncGenerator[bytes, None]: ...
    async def close(self) -> None: ...


class RunTask(Protocol):
    """Runs one of the provider's child tasks, by name, in turn with those of other organizations.

    Raises WorkFailed.
    """

    async def __call__(
        self, name: str, arguments: Mapping[str, Any], for_org: OrgId, progress: Callable[[float], None] | None = None
    ) -> dict[str, Any]: ...


# As RunTask, for a task that streams: yields what it makes.
StreamTask = Callable[[str, Mapping[str, Any], OrgId], AsyncGenerator[bytes, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTools:
    """What a local server may use of the gateway."""

    run: RunTask
    stream: StreamTask


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalService:
    """How a provider answers inside this process: its server, and the functions that run in child processes."""

    start: Callable[[LocalTools], LocalServer]
    tasks: Mapping[str, ChildTask] = field(default_factory=dict)
