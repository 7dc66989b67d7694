"""Calls over HTTP to a gateway, and responses checked against their schemas."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from penstock.api.asgi import AsgiApp
from penstock.api.openapi.response_schemas import SCHEMAS
from tests.api.raw_http import RawResponse, Server, serving
from tests.gateway import OpenGateway, RunningGateway


@dataclass(frozen=True, slots=True)
class ServedApi:
    """A gateway and the server in front of it."""

    running: RunningGateway
    served: Server

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RawResponse:
        return await self.served.call(method, path, key=key or self.running.key, body=body, headers=headers)

    async def image(self, **more: Any) -> RawResponse:
        body = {"model": "image-1", "prompt": "a pear", "size": "64x64", **more}
        return await self.call("POST", "/compat/v1/images/generations", body)

    async def video(self, **more: Any) -> RawResponse:
        return await self.call(
            "POST", "/compat/v1/videos", {"model": "video-1", "prompt": "a train", "seconds": 4, **more}
        )

    async def chat(self, **more: Any) -> RawResponse:
        body = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}], **more}
        return await self.call("POST", "/compat/v1/chat/completions", body)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.served.port}/compat/v1"


@asynccontextmanager
async def served_api(open_gateway: OpenGateway, **options: Any) -> AsyncIterator[ServedApi]:
    """Open a gateway with these options and serve it."""
    async with (
        open_gateway(**options) as running,
        serving(AsgiApp(running.gateway), running.gateway.settings) as served,
    ):
        yield ServedApi(running, served)


def checked_json(name: str, response: RawResponse, status: int = 200) -> Any:
    """Return the JSON of a response; it must have this status and match this schema."""
    assert response.status == status, response
    assert [str(error) for error in validator(name).iter_errors(response.json)] == []
    return response.json


@cache
def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    schema = {**SCHEMAS[name], "components": {"schemas": dict(SCHEMAS)}}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def form(*parts: tuple[str, bytes, str | None]) -> tuple[bytes, dict[str, str]]:
    """Return a multipart body of names, values and file names, and its Content-Type header."""
    body = b""
    for name, value, filename in parts:
        file = "" if filename is None else f'; filename="{filename}"'
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + value + b"\r\n"
    return body + b"--edge--\r\n", {"content-type": "multipart/form-data; boundary=edge"}
