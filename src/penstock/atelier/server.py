"""The built-in provider at work: takes what its table sends, renders in child processes, answers like any vendor."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from penstock.atelier.renderers import echo
from penstock.imaging.workers import WorkerPool, WorkFailed
from penstock.providers.spec import Outgoing, Reply

ORIGIN = "atelier:"
_BROKEN = "The renderer failed."
_FILMS_KEPT = 8
# Words in a prompt that make a clip go wrong on purpose, so that people can try their error paths.
MARKERS = {
    "[fail]": ("broken", "The clip failed because its prompt asked for it with [fail]."),
    "[refuse]": ("refused", "The clip was refused because its prompt asked for it with [refuse]."),
}


@dataclass(slots=True)
class Film:
    """A clip being made; forgotten when the process ends, and then simply made again."""

    status: str = "queued"
    progress: float = 0.0
    data: bytes | None = None
    kind: str = "broken"
    message: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class AtelierServer:
    """Stands where other providers have a server."""

    def __init__(self, pool: WorkerPool, scratch: Path) -> None:
        self._pool = pool
        self._scratch = scratch
        self._films: dict[str, Film] = {}

    async def send(self, request: Outgoing) -> Reply:
        kind, _, film = request.url.removeprefix(ORIGIN).strip("/").partition("/")
        if film:
            return self._cancel(film) if request.method == "DELETE" else self._status(film)
        if kind == "echo":
            completion = echo.completion(msgspec.json.decode(request.body))
            return Reply(200, {"content-type": "application/json"}, msgspec.json.encode(completion))
        fields = msgspec.msgpack.decode(request.body)
        if kind == "clips":
            return self._begin(fields)
        count = fields.pop("n", 1)
        try:
            pictures = await asyncio.gather(*(self._picture(kind, fields, number) for number in range(count)))
        except WorkFailed as problem:
            refused = problem.kind == "refused"
            return _reply({"message": problem.message if refused else _BROKEN}, 400 if refused else 500)
        return _reply({"id": _new("pic"), "pictures": pictures})

    async def stream(self, request: Outgoing) -> AsyncGenerator[bytes, None]:
        """Chat, bit by bit."""
        for chunk in echo.chunks(msgspec.json.decode(request.body)):
            yield b"data: " + msgspec.json.encode(chunk) + b"\n\n"
            await asyncio.sleep(0)  # as a provider would, let others have their turn
        yield b"data: [DONE]\n\n"

    async def close(self) -> None:
        tasks = [film.task for film in self._films.values() if film.task and not film.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _picture(self, kind: str, fields: dict[str, Any], number: int) -> dict[str, Any]:
        if kind == "enlarge":
            factor = fields.get("scale_factor", 2)
            return await self._pool.run("studio.enlarge", data=fields["images"][0], factor=factor)
        seed = fields.get("seed", 0) + number
        common = {"prompt": fields["prompt"], "seed": seed, "width": fields["width"], "height": fields["height"]}
        if kind == "sketch":
            return await self._pool.run("studio.sketch", **common)
        return await self._pool.run("studio.retouch", images=fields["images"], mask=fields.get("mask"), **common)

    # --------------------------------------------------------------------------------------------------------- clips

    def _begin(self, fields: dict[str, Any]) -> Reply:
        name, film = _new("clip"), Film()
        self._films[name] = film
        film.task = asyncio.create_task(self._shoot(film, fields))
        self._forget_old()
        return self._status(name)

    async def _shoot(self, film: Film, fields: dict[str, Any]) -> None:
        marker = next((word for word in MARKERS if word in fields["prompt"].lower()), None)
        if marker:
            film.kind, film.message = MARKERS[marker]
            film.status = "failed"
            return

        def report(fraction: float) -> None:
            film.status, film.progress = "in_progress", fraction

        report(0.0)
        try:
            with TemporaryDirectory(dir=self._scratch) as folder:
                path = Path(folder) / "film.mp4"
                arguments = {"seed": 0, "image": None, **fields}
                await self._pool.run("studio.clip", progress=report, path=str(path), **arguments)
                film.data = await asyncio.to_thread(path.read_bytes)
        except WorkFailed as problem:
            film.status, film.message = "failed", problem.message if problem.kind == "refused" else _BROKEN
        except OSError:  # no room for the film, or no descriptor for who makes it
            film.status, film.message = "failed", _BROKEN
        else:
            film.status, film.progress = "completed", 1.0

    def _status(self, name: str) -> Reply:
        film = self._films.get(name)
        if film is None:
            return _reply({"message": "No such clip."}, 404)
        answer = {"id": name, "status": film.status, "progress": film.progress, "message": film.message}
        if film.data:
            answer["data"] = film.data
        return _reply({**answer, "kind": film.kind, "poll_after_seconds": 0.25})

    def _cancel(self, name: str) -> Reply:
        film = self._films.get(name)
        if film and film.task and not film.task.done():
            film.task.cancel()
            film.status = "cancelled"
        return self._status(name)

    def _forget_old(self) -> None:
        """Finished films stay a while, for a poll that comes twice."""
        done = [name for name, film in self._films.items() if film.task and film.task.done()]
        for name in done[: max(0, len(done) - _FILMS_KEPT)]:
            del self._films[name]


def _new(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"


def _reply(answer: dict[str, Any], status: int = 200) -> Reply:
    return Reply(status, {"content-type": "application/msgpack"}, msgspec.msgpack.encode(answer))
