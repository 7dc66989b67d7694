"""Run the gateway, or a worker, which has no HTTP port unless it is given one for its metrics."""

import asyncio
import gc
import shlex
import signal
import sys
from collections.abc import Coroutine
from contextlib import nullcontext
from pathlib import Path
from shutil import which
from socket import socket
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import structlog
import typer
import uvloop

from penstock.api.asgi import AsgiApp
from penstock.api.endpoints.metrics import publish_forever
from penstock.api.routes import WORKER_ROUTES
from penstock.app.background import run_background_work
from penstock.app.build import build_gateway
from penstock.app.first_start import Welcome, ensure_first_key
from penstock.app.opening import lock_data_folder
from penstock.commands.data_folder import URL_FILE, Config, Data, load_settings
from penstock.commands.owner import stay_owner
from penstock.environment import ENVIRONMENT
from penstock.errors import Problem
from penstock.event_loop import cancel_and_wait, configure_process
from penstock.http_server import server
from penstock.imaging.workers import available_cores
from penstock.models.catalog import Catalog
from penstock.process_shares import share
from penstock.settings import Settings
from penstock.telemetry.logs import configure_logs
from penstock.telemetry.metrics import FigureExchange

if TYPE_CHECKING:
    from penstock.supervisor import ServerProcess


def serve(
    host: Annotated[str | None, typer.Option(help="IP address or host name to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    processes: Annotated[
        str | None,
        typer.Option(help="Processes that share the port: a number, or `auto` for one per core. Needs Postgres."),
    ] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run the gateway."""
    count = "0" if processes == "auto" else processes
    settings = load_settings(host=host, port=port, processes=count, data=data, config=config)
    stay_owner()
    configure_logs(settings.log_level, settings.log_format)
    _check_exposure(settings)
    settings = share(settings, available_cores())
    if settings.processes > 1:
        raise typer.Exit(_supervise(settings))
    # Processes that share a Postgres database may share the data folder; a SQLite database has one process.
    lock = nullcontext() if settings.database else lock_data_folder(settings.data)
    with lock:
        _run(_serve(settings))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a gateway or a worker. While it starts, the garbage collector is off; `_collect_less_often` turns it on."""
    configure_process()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)
    finally:
        gc.enable()


def _check_exposure(settings: Settings) -> None:
    """Refuse to listen beyond this machine without TLS, because keys would travel unencrypted; warn where that is
    allowed.
    """
    if settings.host in ("127.0.0.1", "::1", "localhost") or settings.behind_tls:
        return
    if not settings.allow_plain_http:
        raise ValueError(
            f"refusing to listen on {settings.host} without TLS: if a proxy in front provides it, set "
            "behind_tls = true; where nobody else can reach the port, set allow_plain_http = true"
        )
    problem = "keys and prompts travel unencrypted: this process listens beyond this machine without TLS"
    structlog.get_logger().warning(problem)


def _collect_less_often() -> None:
    """Let the garbage collector run less often and ignore what is loaded at the start.

    Calls create hardly any cycles, and with Python's defaults the collector takes about 5 % of the time of a call. At
    most 50,000 new objects are searched at once, because nothing else runs meanwhile. A start leaves so little garbage
    that looking for it is not worth a twentieth of a second.
    """
    gc.freeze()
    gc.set_threshold(10_000, 5, 80)
    gc.enable()


async def _serve(settings: Settings) -> None:
    async with build_gateway(settings) as gateway:
        welcome = await ensure_first_key(gateway)
        async with run_background_work(gateway):
            _collect_less_often()
            await server.serve(
                AsgiApp(gateway), settings, lambda: _announce(settings, welcome, _example_model(gateway.catalog))
            )


# --------------------------------------------------------------------------------------------------- several processes


def _supervise(settings: Settings) -> int:
    """Serve with several processes on one socket; return the exit status."""
    from penstock.supervisor import Supervisor  # imported here because most gateways have one process

    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with server.listen(settings.host, settings.port) as listener, TemporaryDirectory(prefix="penstock-") as folder:

        def run_process(process: "ServerProcess") -> int:
            configure_logs(settings.log_level, settings.log_format, process=process.number)
            try:
                _run(_serve_together(settings, listener, process, Path(folder)))
            except (Problem, ValueError, RuntimeError, OSError) as problem:  # those that `cli` expects
                typer.echo(f"penstock: {problem}", err=True)
                return 1
            return 0

        return Supervisor(run_process, settings.processes).run()


async def _serve_together(settings: Settings, listener: socket, process: "ServerProcess", folder: Path) -> None:
    """Serve as one of several processes; `folder` is where they exchange their metrics."""
    async with build_gateway(settings) as gateway:
        gateway.metrics.share(FigureExchange(folder, process.number))
        welcome = await ensure_first_key(gateway)
        # One process is enough to look for what has expired; each runs jobs, delivers webhooks and keeps its leases.
        async with run_background_work(gateway, sweeps=process.number == 1):
            publishing = asyncio.create_task(publish_forever(gateway), name="publish metrics")
            _collect_less_often()

            def ready() -> None:
                if process.number == 1 and not process.is_replacement:
                    _announce(settings, welcome, _example_model(gateway.catalog))
                structlog.get_logger().info("server process is ready", processes=settings.processes)
                process.tell_ready()

            try:
                await server.serve(AsgiApp(gateway), settings, ready, listener=listener, signals=(signal.SIGTERM,))
            finally:
                await cancel_and_wait([publishing])


# ---------------------------------------------------------------------------------------------------------- welcome


def _announce(settings: Settings, welcome: Welcome, model: str | None) -> None:
    """Tell the person at the terminal, and later commands through a file, where the gateway listens."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)  # noqa: S104 (compared, not bound)
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    (settings.data / URL_FILE).write_text(f"http://{host}:{settings.port}\n", encoding="utf-8")
    _print_welcome(settings, welcome, model)


def _example_model(catalog: Catalog) -> str | None:
    """Return an image model to try first: one that needs no credential if there is one; None without any model."""
    models = [
        (provider.key_env is not None, model.id)
        for provider in catalog.providers.active.values()
        for model in provider.models
        if model.op.task == "image" and model.enabled
    ]
    return min(models)[1] if models else None


_PROMPT = "a lighthouse at dusk, calm sea"
_CONTAINER = "container"  # a variable that the image sets, and podman: there is no terminal in the folder


def _print_welcome(settings: Settings, welcome: Welcome, model: str | None) -> None:
    url = settings.base_url
    typer.echo(f"Penstock listens on {url}\n\n    dashboard      {url}/\n    documentation  {url}/docs")
    if welcome.key:
        typer.echo(
            f"""
Your first API key, which is shown only once:

    {welcome.key}

The dashboard asks for it."""
        )
    if welcome.key and model:
        if not ENVIRONMENT.get(_CONTAINER):
            typer.echo(
                f"""
To generate an image from another terminal in this folder:

    {_command(settings)} image "{_PROMPT}" -o lighthouse.png"""
            )
        typer.echo(
            f"""
To generate an image with curl, as any client does:

    export PENSTOCK_KEY={welcome.key}
    curl {url}/compat/v1/images/generations \\
      -H "Authorization: Bearer $PENSTOCK_KEY" \\
      -H "Content-Type: application/json" \\
      -d '{{"model": "{model}", "prompt": "{_PROMPT}"}}'"""
        )
    typer.echo("")
    sys.stdout.flush()


def _command(settings: Settings) -> str:
    """Return how to call the command line from this folder: with its path if it is not on the PATH."""
    program = "penstock"
    if which(program) is None:
        path = Path(sys.executable).with_name(program)
        program = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    is_default = settings.data.resolve() == Path("data").resolve()
    return program if is_default else f"PENSTOCK_DATA={shlex.quote(str(settings.data))} {program}"


def worker(
    port: Annotated[
        int | None, typer.Option(help="Port for /healthz, /readyz and /metrics; without it, none is opened.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="IP address or host name of that port.")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Run a worker: it runs jobs and delivers webhooks for gateways that share its Postgres database."""
    settings = load_settings(host=host, port=port, data=data, config=config, worker=True)
    stay_owner()
    if not settings.database:
        raise ValueError(
            "a worker needs the Postgres database of its gateways: set PENSTOCK_DATABASE to postgresql://…"
        )
    configure_logs(settings.log_level, settings.log_format)
    if port is not None:
        _check_exposure(settings)
    _run(_work(settings, has_port=port is not None))


async def _work(settings: Settings, *, has_port: bool) -> None:
    """Work until SIGTERM or SIGINT; unfinished jobs are left to other workers."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    if not has_port:  # otherwise the server sees to them
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
    async with build_gateway(settings) as gateway, run_background_work(gateway):
        _collect_less_often()
        if has_port:
            await server.serve(AsgiApp(gateway, WORKER_ROUTES), settings, _announce_worker)
        else:
            _announce_worker()
            await stopped.wait()


def _announce_worker() -> None:
    typer.echo("Penstock worker is running")
    sys.stdout.flush()
