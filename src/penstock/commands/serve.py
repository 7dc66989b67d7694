"""Run the gateway, or a worker without a door."""

import asyncio
import gc
import signal
import sys
from contextlib import nullcontext
from typing import Annotated

import typer
import uvloop

from penstock.api import server
from penstock.api.asgi import AsgiApp
from penstock.app import Welcome, alone, first_start, opened_gateway, working
from penstock.commands.terminal import Config, Data, chosen
from penstock.logs import configure_logs
from penstock.settings import Settings
from penstock.upstream.catalog import Catalog


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run the gateway."""
    these = chosen(host=host, port=port, data=data, config=config)
    _check_exposure(these)
    configure_logs(these.log_level)
    # Several processes may share what lies in the folder, but not a database in it.
    place = nullcontext() if these.database else alone(these.data)
    with place, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(these))


def _check_exposure(these: Settings) -> None:
    """Keys travel in the clear over plain HTTP, so beyond this machine something must speak TLS for us."""
    if these.host not in ("127.0.0.1", "::1", "localhost") and not these.behind_tls:
        raise ValueError(
            f"refusing to listen on {these.host} without TLS in front: set behind_tls = true when a proxy provides it"
        )


def _collect_seldom() -> None:
    """What was loaded stays loaded, and hardly anything that a call makes is cyclic: looking for cycles as often as
    Python does by itself costs a twentieth of each call.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


async def _serve(these: Settings) -> None:
    async with opened_gateway(these) as gateway:
        await gateway.keys.check_secret()
        welcome = await first_start(gateway)
        async with working(gateway):
            _collect_seldom()
            await server.serve(AsgiApp(gateway), these, lambda: _greet(these, welcome, _example_model(gateway.catalog)))


def _example_model(catalog: Catalog) -> str | None:
    """An image model to try first, if there is any; one that needs no credential where there is one."""
    models = [
        (provider.key_env is not None, model.id)
        for provider in catalog.active.values()
        for model in provider.models
        if model.op.task == "image" and model.enabled
    ]
    return min(models)[1] if models else None


def _greet(these: Settings, welcome: Welcome, model: str | None) -> None:
    address = these.base_url
    typer.echo(f"Penstock listens on {address}")
    if welcome.key:
        typer.echo(
            f"""
Your first key, shown this once:

    {welcome.key}

Open {address} in a browser and give it that key."""
        )
    if welcome.key and model:
        typer.echo(
            f"""
To make an image from here:

    curl {address}/compat/v1/images/generations \\
      -H "Authorization: Bearer {welcome.key}" -H "Content-Type: application/json" \\
      -d '{{"model": "{model}", "prompt": "a lighthouse at dusk"}}'
"""
        )
    sys.stdout.flush()


def worker(data: Data = None, config: Config = None) -> None:
    """Drive videos and deliver webhooks for gateways that share a Postgres database."""
    these = chosen(data=data, config=config, worker=True)
    if not these.database:
        raise ValueError("a worker needs a database that others reach too: set PENSTOCK_DATABASE to postgresql://…")
    configure_logs(these.log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(these))


async def _work(these: Settings) -> None:
    """Until a signal says stop; what is under way is left to the others in good order."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stopped.set)
    async with opened_gateway(these) as gateway:
        await gateway.keys.check_secret()
        async with working(gateway):
            typer.echo("Penstock works")
            sys.stdout.flush()
            await stopped.wait()
