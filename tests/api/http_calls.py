"""Calls over HTTP to a house, each answer compared with the shape that the document promises."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from penstock.api.asgi import AsgiApp
from penstock.api.response_schemas import SCHEMAS
from tests.api.raw_http import Said, Server, serving
from tests.gateway import OpenGateway, RunningGateway


@dataclass(frozen=True, slots=True)
class Visit:
    """A house, and the door to it."""

    running: RunningGateway
    served: Server

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Said:
        return await self.served.ask(method, path, key=key or self.running.key, body=body, headers=headers)

    async def image(self, **more: Any) -> Said:
        body = {"model": "picture", "prompt": "a pear", "size": "64x64", **more}
        return await self.ask("POST", "/compat/v1/images/generations", body)

    async def video(self, **more: Any) -> Said:
        return await self.ask("POST", "/compat/v1/videos", {"model": "film", "prompt": "a train", "seconds": 4, **more})

    async def talk(self, **more: Any) -> Said:
        body = {"model": "lab/talk", "messages": [{"role": "user", "content": "hello"}], **more}
        return await self.ask("POST", "/compat/v1/chat/completions", body)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.served.port}/compat/v1"


@asynccontextmanager
async def visiting(open_gateway: OpenGateway, **said: Any) -> AsyncIterator[Visit]:
    async with open_gateway(**said) as running, serving(AsgiApp(running.gateway), running.gateway.settings) as served:
        yield Visit(running, served)


def shaped(name: str, said: Said, status: int = 200) -> Any:
    """The answer's JSON, which must have this shape."""
    assert said.status == status, said
    schema = {**SCHEMAS[name], "components": {"schemas": dict(SCHEMAS)}}
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    assert [str(one) for one in validator.iter_errors(said.json)] == []
    return said.json


def form(*parts: tuple[str, bytes, str | None]) -> tuple[bytes, dict[str, str]]:
    """A multipart body of names, values and file names, and the header that goes with it."""
    body = b""
    for name, value, filename in parts:
        file = "" if filename is None else f'; filename="{filename}"'
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + value + b"\r\n"
    return body + b"--edge--\r\n", {"content-type": "multipart/form-data; boundary=edge"}
