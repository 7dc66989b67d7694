"""Make the examples of the API with a real gateway: `python -m docs.examples` writes them, a test compares them."""

import asyncio
import json
import re
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from penstock.api.asgi import AsgiApp
from penstock.api.router import Router
from penstock.api.routes import ROUTES
from penstock.batches.runner import BatchRunner
from penstock.destinations.bucket import BucketClient, Probe
from penstock.net.client import HttpClient
from penstock.sound import wave
from tests.api.accounts import first_account, opened
from tests.api.http_calls import form
from tests.api.raw_http import RawResponse, Server, serving

FILE = Path(__file__).parent.parent / "src" / "penstock" / "api" / "openapi" / "examples.json"
URL = "http://127.0.0.1:8080"
HOOK = "https://hooks.example.com/penstock"
ALERTS = "https://ops.example.com/penstock"
PROMPT = "a lighthouse at dusk, calm sea"
_ROUTER = Router(ROUTES)
# A twentieth of a second of a buzz.
ONE_TONE = b64encode(wave.header(4000, 400) + b"\0\x40\0\xc0" * 100).decode()
ONE_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
_LONGEST_LIST = 2


# ------------------------------------------------------------------------------------------------------ what may differ


class Names:
    """Replaces what differs from run to run: ids by their order, times, durations, sizes, secrets and ports."""

    _ID = re.compile(r"\b([a-z_]+_|chatcmpl-)([0-9a-f]{24,34})\b")
    _MOMENT = 1_794_744_000
    _TIME = "2026-11-15T12:00:00Z"
    _FIXED: Mapping[str, Any] = {
        "duration_ms": 840,
        "size_bytes": 1_403_210,
        "request_size_bytes": 74,
        "response_size_bytes": 688,
        "p50": 840,
        "p95": 2310,
        "last_four": "x9Qw",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "upstream_id": "task_5f2c",
        "key": "pk_…",
        "data": "iVBORw0KGgo…",
        "strict": "0f6c…",
        "previous": "5feceb66…",
        "hash": "d4735e3a…",
        "address": "127.0.0.1",
        "standard": "b41d…",
        "link": "c3VyZWx5IG5vdCBhIHNlY3JldA",
        "voter": "bm9ib2R5IHlvdSBrbm93LCBzb3JyeS4u",
        "recovers_in_seconds": 0,
        **dict.fromkeys(("mean_seconds", "mean_seconds_then", "longest_seconds_then"), 0.25),
    }

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self.plain(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self.plain(each) for each in value[:_LONGEST_LIST]]
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, bool) or value is None:
            return value
        if name in ("created", "expires_at") or name.endswith("_at"):
            return self._MOMENT
        return self._FIXED.get(name, value)

    def _text(self, value: str, name: str) -> str:
        if value.startswith("whsec_"):
            return "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
        if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value):
            return self._TIME
        if name == "value" and value.startswith("/"):
            return "data"  # the folder of this gateway
        if isinstance(self._FIXED.get(name), str):
            return str(self._FIXED[name])
        value = re.sub(r"/vote#[\w-]+", f"/vote#{self._FIXED['link']}", value)
        value = re.sub(r"exp=\d+(&share=\d+)?&sig=[\w-]+", r"exp=1794747600\1&sig=…", value)
        return self._ID.sub(lambda match: self._id(match[1], match[2]), value)

    def _id(self, prefix: str, digits: str) -> str:
        number = self._ids.setdefault(digits, f"01a1e0c25aa2d5b5e1b61ef5{len(self._ids) + 1:08x}")
        return f"{prefix}{number}"


# ---------------------------------------------------------------------------------------------------------------- calls


@dataclass
class Story:
    """A gateway that is called, and the examples that result: by operation, the call and the response by status."""

    served: Server
    key: str
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        parts: Mapping[str, str | bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        shown: bool = True,
    ) -> Any:
        """Make a call that must succeed; add it to the examples, and return what the gateway returned."""
        raw, sent_headers = body, dict(headers or {})
        if parts is not None:
            raw, content_type = form(*(as_part(name, value) for name, value in parts.items()))
            sent_headers |= content_type
        response = await self.served.call(method, path, key=self.key, body=raw, headers=sent_headers)
        assert response.status < 300, (path, response)
        if shown:
            self._add(method, path, body, parts, headers, response)
        return response.json if response.headers.get("content-type") == "application/json" else None

    def _add(
        self,
        method: str,
        path: str,
        body: Any,
        parts: Mapping[str, str | bytes] | None,
        headers: Mapping[str, str] | None,
        response: RawResponse,
    ) -> None:
        plain_path, _, query = path.partition("?")
        route, values = _ROUTER.find(method, plain_path.encode())
        request: dict[str, Any] = {
            "path": {name: self.names.plain(value) for name, value in values.items()},
            "query": self.names.plain(dict(pair.split("=") for pair in query.split("&"))) if query else {},
            "headers": dict(headers or {}),
        }
        if body is not None:
            request["json"] = self.names.plain(body)
        if parts is not None:
            request["form"] = {
                name: value if isinstance(value, str) else f"@{name}.png" for name, value in parts.items()
            }
        example = self.examples.setdefault(route.endpoint.__name__, {"requests": [], "responses": {}})
        example["requests"].append({name: value for name, value in request.items() if value or name == "json"})
        if response.headers.get("content-type") == "application/json" and route.gives != "Document":
            example["responses"].setdefault(str(response.status), self.names.plain(response.json))

    async def until_made(self, image_id: str) -> None:
        """Ask for an asynchronous image, without an example, until it is there."""
        async with asyncio.timeout(60):
            while True:
                if "data" in await self.call("GET", f"/compat/v1/images/{image_id}", shown=False):
                    return
                await asyncio.sleep(0.05)

    async def until_ended(self, video_id: str, path: str = "videos") -> None:
        """Poll a video, or another job, without an example, until it has ended."""
        async with asyncio.timeout(60):
            while True:
                found = await self.call("GET", f"/compat/v1/{path}/{video_id}", shown=False)
                if found["status"] in ("completed", "failed"):
                    return
                await asyncio.sleep(0.05)

    async def until_delivered(self, path: str) -> str:
        """Return the id of a message of this list that has been delivered."""
        async with asyncio.timeout(60):
            while True:
                found = await self.call("GET", f"{path}?status=delivered", shown=False)
                if found["data"]:
                    return str(found["data"][0]["id"])
                await asyncio.sleep(0.05)


def as_part(name: str, value: str | bytes) -> tuple[str, bytes, str | None]:
    return (name, value.encode(), None) if isinstance(value, str) else (name, value, f"{name}.png")


# ------------------------------------------------------------------------------------------------------------ the story


async def make_things(story: Story) -> str:
    """Make images, videos and chats. Returns the id of an image request."""
    image = {"model": "atelier/sketch", "prompt": PROMPT, "size": "512x512"}
    made = await story.call("POST", "/compat/v1/images/generations", image)
    await story.call("POST", "/compat/v1/images/generations?dryRun=true", image)
    await story.call("GET", "/v1/drill?down=atelier")
    await story.call("POST", "/compat/v1/images/generations", image, headers={"X-Service-Replay": "record"})
    waiting = await story.call("POST", "/compat/v1/images/generations", image, headers={"Prefer": "respond-async"})
    await story.call("GET", f"/compat/v1/images/{made['id']}")
    file = (await story.served.call("GET", path_of(made))).body
    parts: dict[str, str | bytes] = {"model": "atelier/retouch", "prompt": "make it night", "image": file}
    await story.call("POST", "/compat/v1/images/edits", parts=parts)
    for path in ("/v1/verify", "/verify"):
        await story.call("POST", path, {"file": f"data:image/png;base64,{ONE_PIXEL}"})
    later = await story.call("POST", "/compat/v1/images/edits", parts=parts, headers={"Prefer": "respond-async"})
    shot = {"model": "atelier/clip", "prompt": "a sunrise over the sea", "size": "128x128"}
    video = {**shot, "seconds": 1}
    started = await story.call("POST", "/compat/v1/videos", {**video, "webhook_url": HOOK})
    await story.call("POST", "/compat/v1/videos?dryRun=true", video)
    await story.until_ended(started["id"])
    await story.call("GET", f"/compat/v1/videos/{started['id']}")
    await story.call("GET", "/compat/v1/videos?limit=1")
    await story.call("GET", f"/compat/v1/videos/{started['id']}/content")
    await story.call("DELETE", f"/compat/v1/videos/{started['id']}")
    await story.call("POST", "/compat/openrouter/v1/videos?dryRun=true", {**shot, "duration": 1})
    openrouter = await story.call("POST", "/compat/openrouter/v1/videos", {**shot, "duration": 1})
    await story.until_ended(openrouter["id"])
    await story.call("GET", f"/compat/openrouter/v1/videos/{openrouter['id']}")
    await story.call("GET", "/compat/openrouter/v1/videos/models")
    broken = await story.call("POST", "/compat/v1/videos", {**video, "prompt": "[fail]"}, shown=False)
    await story.until_ended(broken["id"])
    messages = [{"role": "user", "content": "Hello there"}]
    await story.call("POST", "/compat/v1/chat/completions", {"model": "atelier/echo", "messages": messages})
    await story.call("POST", "/compat/v1/responses", {"model": "atelier/echo", "input": "Hello there"})
    speech = {"model": "atelier/voice", "input": "Hello there."}
    await story.call("POST", "/compat/v1/audio/speech?dryRun=true", speech)
    await story.call("GET", "/compat/v1/audio/voices?model=atelier/voice&search=alloy")
    await story.call("GET", "/compat/v1/audio/models")
    await story.call("POST", "/compat/v1/audio/speech", speech, headers={"Accept": "application/json"})
    heard = {"model": "atelier/listen", "input_audio": {"data": ONE_TONE, "format": "wav"}}
    await story.call("POST", "/compat/v1/audio/transcriptions?dryRun=true", heard)
    await story.call("POST", "/compat/v1/audio/transcriptions", heard)
    await story.call("POST", "/compat/v1/audio/translations", {**heard, "response_format": "verbose_json"})
    written = await story.call("POST", "/compat/v1/audio/transcriptions", heard, headers={"Prefer": "respond-async"})
    await story.until_ended(written["id"], "audio/transcriptions")
    await story.call("GET", f"/compat/v1/audio/transcriptions/{written['id']}")
    await story.call("GET", "/compat/v1/audio/transcriptions?limit=1")
    await story.call("GET", f"/compat/v1/audio/transcriptions/{written['id']}/content")
    await story.call("DELETE", f"/compat/v1/audio/transcriptions/{written['id']}")
    said = await story.call("POST", "/compat/v1/audio/translations", heard, headers={"Prefer": "respond-async"})
    await story.until_ended(said["id"], "audio/transcriptions")
    sound = await story.call("POST", "/compat/v1/audio/speech", speech, headers={"Prefer": "respond-async"})
    await story.until_ended(sound["id"], "audio/generations")
    effect = {"model": "atelier/sound", "prompt": "rain on a roof, and thunder", "seconds": 4}
    await story.call("POST", "/compat/v1/audio/generations?dryRun=true", effect)
    effect_job = await story.call("POST", "/compat/v1/audio/generations", effect)
    await story.until_ended(effect_job["id"], "audio/generations")
    await story.call("GET", f"/compat/v1/audio/generations/{sound['id']}")
    await story.call("GET", "/compat/v1/audio/generations?limit=1")
    await story.call("GET", f"/compat/v1/audio/generations/{sound['id']}/content")
    await story.call("DELETE", f"/compat/v1/audio/generations/{sound['id']}")
    await story.until_made(waiting["id"])
    await story.until_made(later["id"])
    return str(made["id"])


def path_of(made: Any) -> str:
    return "/" + str(made["data"][0]["url"]).split("/", 3)[3]


async def look_at_the_account(story: Story, image_id: str) -> None:
    await story.call("GET", "/compat/v1/models")
    await story.call("GET", "/compat/v1/models/atelier/sketch?schema=true")
    message = await story.until_delivered("/v1/webhooks/messages")
    await story.call("GET", "/v1/requests?kind=video&limit=1")
    await story.call("GET", f"/v1/requests/{image_id}")
    await story.call("GET", f"/v1/requests/{image_id}/payloads")
    [output] = (await story.call("GET", f"/v1/outputs?request_id={image_id}"))["data"]
    await story.call("GET", f"/v1/outputs/{output['id']}")
    await story.call("PATCH", f"/v1/outputs/{output['id']}", {"favorite": True, "keep": "7d"})
    await story.call("POST", f"/v1/outputs/{output['id']}/share", {"expires_in": "24h"})
    await story.call("DELETE", f"/v1/outputs/{output['id']}/share")
    month = datetime.now(UTC).strftime("%Y-%m-01T00:00:00Z")
    await story.call("GET", f"/v1/usage?model=atelier/sketch&bucket=month&created_after={month}")
    await story.call("GET", "/v1/usage/failures")
    await story.call("GET", "/v1/usage/forecast")
    await story.call("GET", "/v1/usage/focus")
    labels = [{"name": "customer", "required": False, "values": None, "budget": True}]
    await story.call("PUT", "/v1/labels", {"declared_labels": labels})
    await story.call("GET", "/v1/labels")
    await make_a_batch(story)
    await make_a_trial(story)
    await manage_destinations(story)
    budget = {"usd_per_month": 50, "alert_percents": [80, 100]}
    await story.call("PUT", "/v1/label-budgets/customer/acme", budget)
    await story.call("GET", "/v1/label-budgets")
    await story.call("DELETE", "/v1/label-budgets/customer/acme")
    await story.call("GET", "/v1/balance")
    await story.call("GET", "/v1/webhooks/messages?limit=1")
    await story.call("GET", f"/v1/webhooks/messages/{message}")
    await story.call("POST", f"/v1/webhooks/messages/{message}/redeliver")
    await story.call("POST", "/v1/webhooks/messages/redeliver")
    await story.call("POST", "/v1/webhooks/test", {"url": HOOK})
    await story.call("GET", "/v1/webhooks/secret")
    await story.call("POST", "/v1/webhooks/secret/rotate", {"overlap_hours": 24})


async def manage_destinations(story: Story) -> None:
    keys = {"access_key_id": "AKIAEXAMPLEEXAMPLE01", "secret_access_key": "example-secret-of-the-first-keys"}
    bucket = {"url": "s3://acme-media/outputs", "region": "eu-central-1", "name": "archive"}
    path = f"/v1/destinations/{(await story.call('POST', '/v1/destinations', {**bucket, **keys}))['id']}"
    await story.call("GET", "/v1/destinations")
    await story.call("PATCH", path, {"required": True})
    await story.call("POST", f"{path}/rotate", {**keys, "secret_access_key": "example-secret-of-the-second-keys"})
    await story.call("POST", f"{path}/check")
    await story.call("DELETE", path)


async def make_a_batch(story: Story) -> None:
    row = {"custom_id": "pear", "body": {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}}
    batch = {"endpoint": "/v1/images/generations", "requests": [row], "max_cost": 5, "start": False}
    await story.call("POST", "/v1/batches?dryRun=true", batch)
    made = await story.call("POST", "/v1/batches", batch)
    await story.call("GET", "/v1/batches")
    path = f"/v1/batches/{made['id']}"
    await story.call("GET", path)
    await story.call("GET", f"{path}/results")
    await story.call("GET", "/compat/v1/batches")
    await story.call("GET", f"/compat/v1/batches/{made['id']}")
    await story.call("POST", f"{path}/resume", {"max_cost": 10})
    await story.call("POST", f"{path}/pause")
    await story.call("POST", f"{path}/cancel")
    line = json.dumps({**row, "url": "/v1/images/generations"}).encode()
    file = await story.call("POST", "/compat/v1/files", parts={"file": line, "purpose": "batch"})
    await story.call("GET", "/compat/v1/files")
    await story.call("GET", f"/compat/v1/files/{file['id']}")
    await story.call("GET", f"/compat/v1/files/{file['id']}/content")
    batch = {"input_file_id": file["id"], "endpoint": "/v1/images/generations", "completion_window": "24h"}
    made = await story.call("POST", "/compat/v1/batches", batch)
    await story.call("POST", f"/compat/v1/batches/{made['id']}/cancel")
    await story.call("DELETE", f"/compat/v1/files/{file['id']}")


MODELS = {"atelier/sketch": {"aliases": ["house-style"]}}


async def make_a_trial(story: Story) -> None:
    prompts = ["a pear on a table", "a fox in the snow"]
    models = ["atelier/sketch", "house-style"]
    trial = {"name": "spring", "models": models, "prompts": prompts, "parameters": {"size": "64x64"}, "max_cost": 5}
    await story.call("POST", "/v1/trials?dryRun=true", trial)
    made = await story.call("POST", "/v1/trials", trial)
    path = f"/v1/trials/{made['id']}"
    await story.call("GET", "/v1/trials")
    link = await story.call("POST", f"{path}/link", {"expires_in_days": 7})
    await story.call("POST", "/vote/pair", {"link": link["url"].partition("#")[2]})
    await story.call("GET", path)
    await story.call("DELETE", f"{path}/link")
    await story.call("POST", f"{path}/verdict", {"model": "atelier/sketch", "alias": "hero-image"})
    await story.call("GET", "/v1/aliases")
    await story.call("PUT", "/v1/aliases/hero-image", {"model": "atelier/sketch"})
    await story.call("DELETE", "/v1/aliases/hero-image")
    await story.call("DELETE", path)


async def manage_keys_and_recordings(story: Story, image_id: str) -> None:
    key = await story.call("POST", "/v1/keys", {"name": "shop backend", "usd_per_day": 5})
    await story.call("GET", "/v1/keys?limit=1")
    await story.call("GET", f"/v1/keys/{key['id']}")
    await story.call("PATCH", f"/v1/keys/{key['id']}", {"usd_per_month": 50, "models": ["atelier/*"]})
    await story.call("DELETE", f"/v1/keys/{key['id']}")
    await story.call("GET", "/v1/key")
    recording = (await story.call("GET", "/v1/recordings"))["data"][0]["id"]
    await story.call("GET", f"/v1/recordings/{recording}")
    exported = await story.call("GET", f"/v1/recordings/{recording}/export")
    await story.call("DELETE", f"/v1/recordings/{recording}")
    await story.call("POST", "/v1/recordings", exported)
    await story.call("DELETE", f"/v1/requests/{image_id}/payloads")


async def operate(story: Story) -> None:
    org = await story.call("POST", "/v1/orgs", {"name": "studio", "billing_type": "prepaid"})
    await story.call("GET", "/v1/orgs")
    await story.call("PATCH", f"/v1/orgs/{org['id']}", {"usd_per_month": 500, "storage_bytes": 5_000_000_000})
    await story.call("GET", f"/v1/orgs/{org['id']}")
    await story.call("POST", f"/v1/orgs/{org['id']}/keys", {"name": "first key", "scopes": ["admin"]})
    await story.call("POST", f"/v1/orgs/{org['id']}/credits", {"usd": 100, "note": "invoice 7"})
    await story.call("GET", f"/v1/orgs/{org['id']}/credits")
    alert = await story.until_delivered("/v1/alerts")
    await story.call("GET", "/v1/alerts?limit=1")
    await story.call("POST", f"/v1/alerts/{alert}/redeliver")
    await story.call("POST", "/v1/alerts/test")
    await story.call("GET", "/v1/alerts/secret")
    account = {"provider": "fal", "name": "eu", "credential": "fal-key-of-the-second-account", "weight": 3}
    added = (await story.call("POST", "/v1/accounts", account))["id"]
    await story.call("GET", "/v1/accounts")
    await story.call("PATCH", f"/v1/accounts/{added}", {"weight": 5})
    await story.call("POST", f"/v1/accounts/{added}/rotate", {"credential": "fal-key-that-replaces-the-other"})
    await story.call("DELETE", f"/v1/accounts/{added}?drain=true")
    await story.call("GET", "/v1/providers")
    await story.call("POST", "/v1/providers/atelier/check?dryRun=true", {})
    await story.call("POST", "/v1/session", {"keep": True})
    await story.call("GET", "/v1/session")
    await story.call("DELETE", "/v1/session")
    await story.call("GET", "/auth/options")
    await story.call("GET", "/v1/users")
    await story.call("GET", "/v1/invitations")
    await story.call("PUT", "/v1/own-key-limits", {"keys": 3, "days": 30, "usd_per_month": 20, "models": ["atelier/*"]})
    await story.call("GET", "/v1/own-key-limits")
    await story.call("GET", "/v1/guards")
    await story.call("GET", f"/v1/audit?target={org['id']}&limit=1")
    await story.call("GET", "/v1/settings")
    for path in ("/metrics", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/images", "/llms.txt"):
        await story.call("GET", path)


async def accept(*_: Any, **__: Any) -> int:
    """The receiver of webhooks: it accepts everything."""
    return 200


async def write_nothing(*_: Any) -> Probe:
    """A bucket in which a file could be written, read and deleted."""
    return Probe(can_read=True, can_delete=True)


async def wait(_: BatchRunner) -> None:
    """Begin no batch."""


async def make_examples(folder: Path) -> dict[str, dict[str, Any]]:
    alerts: dict[str, Any] = {"alert_url": ALERTS, "alert_balance_usd": "50.00"}
    # Batches wait, or what they cost would depend on how far they were.
    options: dict[str, Any] = {"public_url": URL, "public_verify": True, "access_log": False, "models": MODELS}
    guards = {
        "words": {"rules": {"words": ["explosive*"], "max_characters": 4000}, "kinds": ["image", "edit", "video"]}
    }
    with (
        patch.object(HttpClient, "post_guarded", accept),
        patch.object(BatchRunner, "_claim_free", wait),
        patch.object(BucketClient, "probe", write_nothing),
    ):
        async with opened(folder, works=True, **options, **alerts, guards=guards) as gateway:
            account = await first_account(gateway)
            await gateway.alerts.check()
            async with serving(AsgiApp(gateway), gateway.settings) as served:
                story = Story(served, account.admin.key)
                image_id = await make_things(story)
                await look_at_the_account(story, image_id)
                await manage_keys_and_recordings(story, image_id)
                await operate(story)
    return story.examples


def as_text(examples: Mapping[str, Any]) -> str:
    return json.dumps(examples, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(as_text(asyncio.run(make_examples(Path(folder)))))


if __name__ == "__main__":
    main()
