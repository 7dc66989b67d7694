"""Serve a gateway's abilities to agents over the Model Context Protocol."""

from typing import Annotated, Literal

import typer

from penstock.commands.data_folder import Config, Data
from penstock.commands.gateway_client import Key, Url, find_gateway
from penstock.package_extras import check_extra


def mcp(
    transport: Annotated[
        Literal["stdio", "http"], typer.Option(help="How agents connect: over stdin and stdout, or over HTTP.")
    ] = "stdio",
    port: Annotated[int, typer.Option(help="Port on this machine, for HTTP. The path is /mcp.")] = 8081,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Let agents make images, videos, speech and sounds with a gateway, over the Model Context Protocol."""
    check_extra("mcp", "penstock mcp")
    from penstock.commands.mcp_server import build_server  # imported here because its library is an extra

    server = build_server(find_gateway(url, key, data, config), reads_files=transport == "stdio")
    if transport == "stdio":
        server.run("stdio")
    else:
        typer.echo(f"Agents connect to http://127.0.0.1:{port}/mcp", err=True)
        server.run("streamable-http", host="127.0.0.1", port=port)
