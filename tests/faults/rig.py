"""Real processes, a provider, a webhook receiver over TLS and a database: to be killed, stopped and started again.

async with rigged(folder, database) as rig:
    async with rig.serve(failpoints="settle.in_tx=kill:3") as served:
        promised = await rig.promise(served, 24)
        assert await served.died() == -SIGKILL
    async with rig.serve() as served:
        await rig.settled(served)
    await rig.check(promised)
"""

import asyncio
import json
import os
import re
import signal
import sys
import time
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import openai
import psutil
import psycopg
import trustme
from psycopg.rows import dict_row
from standardwebhooks import Webhook

from penstock.accounts.audit import audit
from penstock.clock import Clock
from penstock.media.opening import open_storage
from penstock.settings import Settings
from penstock.store.opening import open_store
from tests import sounds
from tests.api.raw_http import RawConnection, RawResponse, request
from tests.fake_providers import chat
from tests.fake_providers.scripted import (
    CHARACTER_USD,
    HEARD_SECOND_USD,
    IMAGE_USD,
    KEY,
    KEY_ENV,
    SECOND_USD,
    SOUND_SECOND_USD,
    ScriptedProvider,
    scripted_provider,
)
from tests.http_client import server_tls
from tests.ports import unused_port
from tests.tcp_server import Connection, serve

ROOT = Path(__file__).parents[2]
HOST = "hooks.example.com"
CREDIT = Decimal(1_000_000)  # a night of kills makes a hundred thousand videos
SECONDS = 4  # of each video
VIDEO_USD = SECOND_USD * SECONDS
CHAT_WORDS = 3  # of each chat, and of its response
SOUND_SECONDS = 2  # of each sound that is made or transcribed
SPOKEN_CHARACTERS = 24  # of each speech
HEARD = {"data": b64encode(sounds.wav(SOUND_SECONDS)).decode(), "format": "wav"}
SPEECH = "/compat/v1/audio/speech"
SOUNDS = "/compat/v1/audio/generations"
TRANSCRIPTS = "/compat/v1/audio/transcriptions"
# What a completed request of each model costs.
PRICES_USD = {
    "video-1": VIDEO_USD,
    "image-1": IMAGE_USD,
    "lab/chat": CHAT_WORDS * (chat.INPUT_USD + chat.OUTPUT_USD),
    "lab/voice": SPOKEN_CHARACTERS * CHARACTER_USD,
    "lab/sound": SOUND_SECONDS * SOUND_SECOND_USD,
    "lab/listen": SOUND_SECONDS * HEARD_SECOND_USD,
}
START_SECONDS = 40
_FRESH_SECONDS, _A_NIGHT_SECONDS = 240, 86_400

# Leases run out soon, so that nobody waits half a minute for a dead worker's; a message's is half as long again as its
# attempt. Nothing else is in a hurry.
ENVIRONMENT = {
    KEY_ENV: KEY,
    "PENSTOCK_STARTING_CREDIT_USD": str(CREDIT),
    "PENSTOCK_LEASE_SECONDS": "2",
    "PENSTOCK_WEBHOOK_TIMEOUT_SECONDS": "4",
    "PENSTOCK_EGRESS_ALLOW_HOSTS": HOST,
    "PENSTOCK_IMAGE_WORKERS": "1",
    "PENSTOCK_DATABASE_CONNECTIONS": "8",
}


async def until(met: Callable[[], Awaitable[bool]] | Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while True:
            found = met()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.05)


def send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Past `Process.send_signal`, which would first look whether it has ended, and so take the exit code away from the
    thread that waits for it.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


class EndedEarly(AssertionError):
    """A process ended before it listened."""


@dataclass(slots=True)
class Running:
    """One process of the gateway."""

    process: asyncio.subprocess.Process
    log: Path
    port: int = 0
    key: str = ""

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> RawResponse:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        async with RawConnection(reader, writer) as connection, asyncio.timeout(30):
            await connection.send(request(method, path, key=self.key, body=body, headers=headers))
            return await connection.read_response()

    async def died(self, seconds: float = 60) -> int:
        return await asyncio.wait_for(self.process.wait(), seconds)

    async def kill(self) -> None:
        send(self.process, signal.SIGKILL)
        await self.died()

    async def stop(self) -> int:
        send(self.process, signal.SIGTERM)
        return await self.died()

    def is_stopped(self) -> bool:
        """Whether SIGSTOP has stopped it."""
        return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED

    @property
    def said(self) -> str:
        return self.log.read_text()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook delivery that the receiver got."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Rig:
    """What outlives the processes."""

    data: Path
    database: str
    lab: ScriptedProvider
    hook: str
    ca_file: Path
    deliveries: list[Delivery]
    key: str = ""
    last_code: int | None = None  # of the process that ended last
    _logs: int = 0
    _videos: int = 0
    _sounds: int = 0

    # ------------------------------------------------------------------------------------------------------- processes

    @asynccontextmanager
    async def serve(self, failpoints: str = "", **environ: str) -> AsyncIterator[Running]:
        """A server that listens; killed at the end if it still runs."""
        port = unused_port()
        async with self._running("serve", "--port", str(port), failpoints=failpoints, **environ) as running:
            greeting = await self._greeting(running, "Penstock listens on ")
            if not self.key:
                greeting += await self._greeting(running, "    pk_")
            if found := re.search(r"^    (pk_\S+)$", greeting, re.MULTILINE):
                self.key = found[1]
            running.port, running.key = port, self.key
            yield running

    @asynccontextmanager
    async def work(self, failpoints: str = "", **environ: str) -> AsyncIterator[Running]:
        """A worker without an HTTP port."""
        async with self._running("worker", failpoints=failpoints, **environ) as running:
            await self._greeting(running, "Penstock worker is running")
            yield running

    @asynccontextmanager
    async def _running(self, *words: str, failpoints: str = "", **environ: str) -> AsyncIterator[Running]:
        self._describe()
        self._logs += 1
        log = self.data.parent / f"log-{self._logs}"
        with log.open("wb") as sink:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.faults.loopback_names", *words, "--data", str(self.data)),
                env=self.environment | environ | {"PENSTOCK_FAILPOINTS": failpoints},
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                cwd=ROOT,
            )
        try:
            yield Running(process, log)
        finally:
            send(process, signal.SIGCONT)  # a stopped process would not hear that it is over
            send(process, signal.SIGKILL)
            self.last_code = await process.wait()
            process._transport.close()  # type: ignore[attr-defined]

    @property
    def environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        ours |= {**ENVIRONMENT, "PENSTOCK_CA_FILE": str(self.ca_file), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        return ours | ({"PENSTOCK_DATABASE": self.database} if self.database else {})

    async def _greeting(self, running: Running, wanted: str) -> str:
        assert running.process.stdout is not None
        lines: list[str] = []
        async with asyncio.timeout(START_SECONDS):
            while line := (await running.process.stdout.readline()).decode():
                lines.append(line)
                if line.startswith(wanted):
                    return "".join(lines)
        raise EndedEarly(f"it ended before it began: {running.said}")

    def _describe(self) -> None:
        """Write penstock.toml, with the provider in it; another process may be reading it now."""
        self.data.mkdir(exist_ok=True, mode=0o700)
        upstream = {model["id"]: model["upstream"] for model in self.lab.settings()["models"]}
        draft = self.data / "penstock.toml.draft"
        draft.write_text(
            f"""[providers.lab]
speaks = "openai"
base_url = "{self.lab.base_url}"
key_env = "{KEY_ENV}"
[[providers.lab.models]]
id = "video-1"
upstream = "{upstream["video-1"]}"
task = "video"
price = {{ unit = "second", usd = "{SECOND_USD}" }}
[[providers.lab.models]]
id = "image-1"
upstream = "{upstream["image-1"]}"
task = "image"
price = {{ unit = "image", usd = "{IMAGE_USD}" }}
[[providers.lab.models]]
id = "lab/chat"
task = "chat"
price = {{ unit = "token", input_usd = "{chat.INPUT_USD}", output_usd = "{chat.OUTPUT_USD}" }}
[[providers.lab.models]]
id = "lab/voice"
upstream = "{upstream["lab/voice"]}"
task = "speech"
price = {{ unit = "character", usd = "{CHARACTER_USD}" }}
[[providers.lab.models]]
id = "lab/sound"
upstream = "{upstream["lab/sound"]}"
task = "sound"
price = {{ unit = "second", usd = "{SOUND_SECOND_USD}" }}
[[providers.lab.models]]
id = "lab/listen"
upstream = "{upstream["lab/listen"]}"
task = "transcription"
price = {{ unit = "second", usd = "{HEARD_SECOND_USD}" }}
"""
        )
        draft.rename(self.data / "penstock.toml")

    async def struck(self, failpoints: str, count: int) -> list[str]:
        """Serve, with so many videos requested, until the process kills itself; what was promised by then. It may come
        to that place with what others left before it listens.
        """
        promised: list[str] = []
        try:
            async with self.serve(failpoints) as served:
                with suppress(OSError):
                    promised = await self.promise(served, count)
                assert await served.died() == -signal.SIGKILL, failpoints
        except EndedEarly:
            assert self.last_code == -signal.SIGKILL, failpoints
        return promised

    # --------------------------------------------------------------------------------------------------------- calling

    async def promise(self, served: Running, count: int = 1, **body: Any) -> list[str]:
        """Request videos all at once, each with a prompt of its own; return the ids of those that were accepted."""

        async def ask(number: int) -> str | None:
            fields = {
                "model": "video-1",
                "seconds": SECONDS,
                "prompt": f"video {number}",
                "webhook_url": self.hook,
                **body,
            }
            try:
                said = await served.ask("POST", "/compat/v1/videos", fields)
            except (ConnectionError, EOFError):
                return None  # cut off: nothing was promised
            assert said.status == 202, said
            return str(said.json["id"])

        self._videos += count
        found = await asyncio.gather(*(ask(self._videos - number) for number in range(count)))
        return [video_id for video_id in found if video_id]

    async def promise_sounds(self, served: Running, count: int) -> list[str]:
        """Request so many effects, as many texts to be spoken and as many transcripts as jobs, all at once; return the
        ids of those that were accepted.
        """

        async def ask(number: int) -> str | None:
            try:
                said = await self.start_sound(served, number)
            except (ConnectionError, EOFError):
                return None  # cut off: nothing was promised
            assert said.status == 202, said
            return str(said.json["id"])

        self._sounds += 3 * count
        found = await asyncio.gather(*(ask(self._sounds - number) for number in range(3 * count)))
        return [sound_id for sound_id in found if sound_id]

    async def start_sound(self, served: Running, number: int) -> RawResponse:
        """Start a job: an effect, a speech or a transcript, depending on the number."""
        fields: dict[str, Any] = {"webhook_url": self.hook}
        if number % 3 == 0:
            fields |= {"model": "lab/sound", "prompt": f"sound {number}", "seconds": SOUND_SECONDS}
            return await served.ask("POST", SOUNDS, fields)
        if number % 3 == 1:
            fields |= {"model": "lab/voice", "input": spoken_text("job", number), "voice": "alloy"}
            return await served.ask("POST", SPEECH, fields, prefer="respond-async")
        fields |= {"model": "lab/listen", "input_audio": HEARD}
        return await served.ask("POST", TRANSCRIPTS, fields, prefer="respond-async")

    async def videos(self, served: Running) -> list[dict[str, Any]]:
        return await self._list(served, "/compat/v1/videos")

    async def sounds(self, served: Running) -> list[dict[str, Any]]:
        """All sounds and transcripts that were made by jobs."""
        return [*await self._list(served, SOUNDS), *await self._list(served, TRANSCRIPTS)]

    async def _list(self, served: Running, path: str) -> list[dict[str, Any]]:
        """All jobs of a path, page by page."""
        found: list[dict[str, Any]] = []
        while True:
            after = f"&after={found[-1]['id']}" if found else ""
            page = (await served.ask("GET", f"{path}?limit=100&order=asc{after}")).json
            found += page["data"]
            if not page["has_more"]:
                return found

    async def settled(self, served: Running, seconds: float = 90) -> list[dict[str, Any]]:
        """All videos, once each request has ended and each webhook message has arrived."""

        async def met() -> bool:
            open_requests = await self.rows("SELECT id FROM requests WHERE status IN ('pending', 'processing') LIMIT 1")
            ended = await self.rows("SELECT id FROM generations WHERE status IN ('queued', 'in_progress') LIMIT 1")
            waiting = await self.rows("SELECT id FROM messages WHERE state = 'waiting' LIMIT 1")
            return not open_requests and not ended and not waiting

        try:
            await until(met, seconds)
        except TimeoutError:
            raise AssertionError(f"not all has ended: {await self._unfinished()}\n{served.said[-4000:]}") from None
        return await self.videos(served)

    async def _unfinished(self) -> str:
        generations = await self.rows(
            "SELECT status, crashes, lease_token, COUNT(*) AS count FROM generations "
            "WHERE status IN ('queued', 'in_progress') GROUP BY 1, 2, 3"
        )
        messages = await self.rows(
            "SELECT deliveries, last_result, COUNT(*) AS count FROM messages WHERE state = 'waiting' GROUP BY 1, 2"
        )
        requests = await self.rows(
            "SELECT model, process_id, COUNT(*) AS count FROM requests "
            "WHERE status IN ('pending', 'processing') GROUP BY 1, 2"
        )
        return f"{generations} {messages} {requests}"

    # --------------------------------------------------------------------------------------------------------- looking

    async def rows(self, sql: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._rows, sql)

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        if self.database:
            with psycopg.connect(self.database, row_factory=dict_row) as connection:
                return connection.execute(sql.encode()).fetchall()
        opened = apsw.Connection(str(self.data / "penstock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        opened.set_busy_timeout(5000)
        try:
            cursor = opened.execute(sql)
            return [dict(zip([name for name, _ in cursor.get_description()], row, strict=True)) for row in cursor]
        finally:
            opened.close()

    async def breaches(self) -> list[str]:
        """What `penstock audit` finds, without starting a process for it."""
        settings = Settings(data=self.data, database=self.database)
        store = await open_store(settings)
        try:
            return await audit(store, open_storage("", {}, self.data), Clock())
        finally:
            await store.close()

    async def audit(self) -> str:
        """Run the command; return what it finds."""
        async with self._running("audit") as running:
            assert running.process.stdout is not None
            said = (await running.process.stdout.read()).decode()
            assert await running.died() == 0, said + running.said
        assert said.endswith("audit clean\n")
        return said.removesuffix("audit clean\n")

    # --------------------------------------------------------------------------------------------------------- checking

    async def check(self, served: Running, promised: list[str], failures: frozenset[str] = frozenset()) -> Counter[str]:
        """Check everything that must hold however often processes crashed; return how the videos and sounds ended."""
        jobs = [*await self.settled(served), *await self.sounds(served)]
        shown = {job["id"]: job for job in jobs}
        assert set(promised) <= shown.keys(), "what was promised is there"
        outcomes = Counter((job["error"] or {}).get("code", job["status"]) for job in jobs)
        assert outcomes.keys() <= {"completed", *failures}, outcomes
        await self.check_money(served)
        self._check_provider(jobs)
        await self._check_messages(served, shown)
        await self._check_seals()
        assert await self.breaches() == []  # the files have the digests of their rows, too
        return outcomes

    async def check_money(self, served: Running) -> None:
        """Each completed request is charged once, others not at all, and no hold is left."""
        records = await self.rows("SELECT id, model, status, cost FROM requests")
        due = {
            record["id"]: PRICES_USD[record["model"]] if record["status"] == "completed" else Decimal(0)
            for record in records
        }
        wrong = [record for record in records if Decimal(record["cost"]).scaleb(-9) != due[record["id"]]]
        assert wrong == []
        balance = (await served.ask("GET", "/v1/balance")).json["available"]["amount"]
        assert Decimal(str(balance)) == CREDIT - sum(due.values())
        kinds = await self.rows("SELECT kind, COUNT(*) AS count FROM transfers GROUP BY kind")
        count = Counter({row["kind"]: row["count"] for row in kinds})
        assert count["capture"] == sum(usd > 0 for usd in due.values())
        assert [row["held"] for row in await self.rows("SELECT held FROM orgs")] == [0]

    async def _check_seals(self) -> None:
        """Each image and video has one entry with the digest of its file, however often it was sealed."""
        sealed = await self.rows(
            "SELECT media.id, media.sha256, seals.sha256 AS sealed, seals.status"
            " FROM media LEFT JOIN seals ON seals.media_id = media.id WHERE media.role = 'output'"
            " AND (media.content_type LIKE 'image/%' OR media.content_type LIKE 'video/%')"
        )
        assert [row for row in sealed if row["sha256"] != row["sealed"] or row["status"] != "signed"] == []
        assert len(sealed) == len({row["id"] for row in sealed})

    def _check_provider(self, jobs: list[dict[str, Any]]) -> None:
        """Nothing was sent twice but what is safe to repeat, and nothing is charged that was not made."""
        received = [*self.lab.videos.received, *self.lab.images.received]
        sent = Counter(heard.fields["prompt"] for heard in received)
        sent += Counter(heard.fields["messages"][-1]["content"] for heard in self.lab.chats.received)
        sent += Counter(heard.fields["text"] for heard in self.lab.effects.received)
        assert not sent or max(sent.values()) == 1, [prompt for prompt, times in sent.items() if times > 1]
        billed = Counter(line.prompt for line in self.lab.invoice)
        made = [job for job in jobs if job["status"] == "completed" and job["model"] != "lab/listen"]
        assert [job for job in made if not billed[job["prompt"]]] == []
        assert [job for job in made if job["model"] != "lab/voice" and billed[job["prompt"]] > 1] == []

    async def _check_messages(self, served: Running, shown: Mapping[str, dict[str, Any]]) -> None:
        """Each message arrived at least once, always with the same bytes and a valid signature."""
        secret = (await served.ask("GET", "/v1/webhooks/secret")).json["key"]
        theirs, openais = Webhook(secret), openai.OpenAI(api_key="none", webhook_secret=secret)
        bodies: defaultdict[str, set[bytes]] = defaultdict(set)
        for delivery in self.deliveries:
            headers = dict(delivery.headers)
            openais.webhooks.verify_signature(delivery.body, headers, tolerance=_A_NIGHT_SECONDS)
            if time.time() - int(headers["webhook-timestamp"]) < _FRESH_SECONDS:  # it takes no others
                theirs.verify(delivery.body.decode(), headers)
            bodies[delivery.id].add(delivery.body)
        assert bodies.keys() == {f"msg_{video_id}" for video_id in shown}
        assert all(len(deliveries) == 1 for deliveries in bodies.values())
        for delivery in self.deliveries:
            job = shown[delivery.event["data"]["id"]]
            status = "cancelled" if (job["error"] or {}).get("code") == "CANCELLED" else job["status"]
            assert delivery.event["type"] == f"{job['object'].partition('.')[0]}.{status}"


def spoken_text(word: str, number: int) -> str:
    """A text of SPOKEN_CHARACTERS that no other call has."""
    return f"{word} {number:0{SPOKEN_CHARACTERS - len(word) - 2}}."


@asynccontextmanager
async def rigged(folder: Path, database: str = "") -> AsyncIterator[Rig]:
    """A rig in this event loop, with a receiver that accepts everything and a quick provider."""
    authority, deliveries = trustme.CA(), list[Delivery]()
    ca_file = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)

    async def receive(connection: Connection) -> None:
        while True:
            head, _, body = (await connection.read_request()).partition(b"\r\n\r\n")
            lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
            deliveries.append(Delivery({name.lower(): value for name, value in lines}, body))
            await connection.respond()

    async with serve(receive, tls=server_tls(authority, HOST)) as receiver, scripted_provider() as lab:
        lab.poll_after_ms = 100
        hook = f"https://{HOST}:{receiver.port}/in"
        yield Rig(folder / "data", database, lab, hook, ca_file, deliveries)
