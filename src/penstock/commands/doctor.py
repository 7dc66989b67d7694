"""Check an installation: what is wrong, and what to do about it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import typer

from penstock.app.opening import open_store_and_vault
from penstock.client.failures import CallFailed
from penstock.clock import Clock
from penstock.commands.data_folder import URL_FILE, Config, Data, load_settings
from penstock.commands.gateway_client import GatewayClient, running_gateway
from penstock.commands.output import Json, print_json
from penstock.commands.tables import show_table
from penstock.environment import ENVIRONMENT
from penstock.errors import Problem
from penstock.media.opening import open_storage
from penstock.media.storage import FileMissing
from penstock.media.storage_writes import probe
from penstock.models import shutdowns
from penstock.models.catalog import Catalog
from penstock.provenance.certificates import CertificateRefused
from penstock.provenance.opening import open_signing
from penstock.providers import discover
from penstock.settings import Settings
from penstock.store.base import Row, Store
from penstock.store.database_time import describe_difference, follow_database_time
from penstock.typed_config import Misconfigured
from penstock.vault import SealBroken, Vault

_EXPIRES_SOON = timedelta(days=30)
State = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. A note is worth knowing; a problem keeps something from working."""

    check: str
    state: State
    found: str
    advice: str = ""


def doctor(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Check configuration, data folder, database, storage, port and credentials; exit with status 1 on a problem."""
    findings = asyncio.run(_examine(data, config, _providers_of_gateway(data, config)))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [[finding.check, finding.state, finding.found, finding.advice] for finding in findings]
        show_table("Checks", ["check", "state", "found", "what to do"], rows)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)


def _providers_of_gateway(data: Data, config: Config) -> list[dict[str, Any]] | None:
    """The providers as the running gateway has them, or None: this shell's environment may differ."""
    try:
        gateway = running_gateway(data=data, config=config, is_operator=True)
        return gateway.get("/v1/providers").body["data"] if gateway else None
    except (CallFailed, Misconfigured, Problem, RuntimeError, ValueError, OSError):
        return None  # the other checks say what is wrong


async def _examine(data: Data, config: Config, providers: list[dict[str, Any]] | None) -> list[Finding]:
    try:
        settings = load_settings(data=data, config=config)
        catalog = Catalog(discover(), settings, ENVIRONMENT)
    except (Misconfigured, ValueError) as problem:
        return [Finding("configuration", "problem", str(problem), "correct penstock.toml or the environment")]
    findings = [Finding("configuration", "ok", "every setting is valid"), _check_public_url(settings)]
    findings += _check_proxies(settings)
    findings += [finding async for finding in _check_database(settings)]
    findings += [finding async for finding in _check_storage(settings)]
    return [*findings, *_check_port(settings), *_check_credentials(catalog, providers), *_check_shutdowns(catalog)]


def _check_public_url(settings: Settings) -> Finding:
    """Callbacks of providers, and the URLs of files, need a URL that others reach."""
    if settings.url_for_providers:
        return Finding("public URL", "ok", settings.public_url)
    found = settings.public_url or f"{settings.base_url}, which works on this machine only"
    advice = "set public_url to the HTTPS URL that callers use, so that the URLs of images work for them"
    return Finding("public URL", "note", found, advice)


def _check_proxies(settings: Settings) -> Iterator[Finding]:
    """Behind a proxy that is not trusted, all callers have the proxy's address."""
    if settings.behind_tls and not settings.trusted_proxies:
        found = "a proxy provides TLS (behind_tls), but trusted_proxies is empty: all callers count as one address"
        yield Finding("proxies", "note", found, "set trusted_proxies to the proxy's address or network")


async def _check_database(settings: Settings) -> AsyncIterator[Finding]:
    name = "Postgres" if settings.database else str(settings.sqlite_file)
    if not settings.database and not settings.sqlite_file.exists():
        yield Finding("database", "note", f"{name} does not exist yet", "start the gateway: it creates the database")
        return
    try:
        async with open_store_and_vault(settings) as (store, vault):
            yield Finding("database", "ok", f"{name} opens, and the master secret belongs to it")
            for finding in _check_certificate(settings, vault, datetime.now(UTC)):
                yield finding
            for name, query in (("accounts", "list_accounts"), ("destinations", "list_destinations")):
                for finding in _check_sealed(vault, name, await store.all(query)):
                    yield finding
            if settings.database:
                yield await _compare_clocks(store)
    except (Problem, RuntimeError, ValueError, OSError) as problem:
        yield Finding("database", "problem", str(problem), "see the message; nothing works without the database")


def _check_certificate(settings: Settings, vault: Vault, now: datetime) -> Iterator[Finding]:
    """What is signed with a certificate that expires becomes invalid with it, and nothing is signed after that."""
    try:
        signing = open_signing(settings, vault, now)
    except CertificateRefused as problem:
        yield Finding(
            "provenance", "problem", str(problem), "correct provenance_certificate, _key, _signer and _anchors"
        )
        return
    if signing is None:
        return
    found = f"{signing.name} signs until {signing.expires_at:%Y-%m-%d}"
    if signing.expires_at - now < _EXPIRES_SOON:
        yield Finding("provenance", "note", found, "renew the certificate")
    elif not signing.is_self_made and not settings.provenance_timestamp_url:
        found += ", and all outputs become invalid on that day: they have no time-stamps"
        yield Finding("provenance", "note", found, "set provenance_timestamp_url")
    else:
        yield Finding("provenance", "ok", found)


def _check_sealed(vault: Vault, name: str, rows: list[Row]) -> Iterator[Finding]:
    """The credentials of these rows can be decrypted: one that cannot was sealed with a master secret that is gone."""
    broken = [row["id"] for row in rows if not _opens(vault, row)]
    if broken:
        found = f"the credentials of {', '.join(broken)} cannot be decrypted with the master secret"
        yield Finding(name, "problem", found, "restore the master secret that encrypted them")
    elif rows:
        yield Finding(name, "ok", f"{len(rows)} credentials can be decrypted")


def _opens(vault: Vault, row: Row) -> bool:
    try:
        vault.open(row["secret"], row["id"])
    except SealBroken:
        return False
    return True


async def _compare_clocks(store: Store) -> Finding:
    """Leases and deadlines are by the database's clock, but callers see the times of this machine."""
    clock = Clock()
    await follow_database_time(store, clock)
    if found := describe_difference(store, clock):
        return Finding("clock", "problem", found, "synchronize the clocks of all machines (NTP)")
    return Finding("clock", "ok", "this machine and the database agree")


async def _check_storage(settings: Settings) -> AsyncIterator[Finding]:
    """Write, read and delete a small file where media are stored."""
    name = settings.media or str(settings.data / "media")
    if not settings.media and not settings.data.exists():
        return
    try:
        storage = open_storage(settings.media, settings.media_options, settings.data)
        is_same = await probe(storage, Clock().now_ms())
    except (Problem, FileMissing, RuntimeError, OSError) as problem:
        yield Finding("storage", "problem", f"{name}: {problem}", "check the bucket, its credentials and media_options")
        return
    if not is_same:
        advice = "check the disk, or what changes files between the gateway and the bucket"
        yield Finding("storage", "problem", f"{name} returns other bytes than were written", advice)
        return
    yield Finding("storage", "ok", f"{name} can be written, read and deleted from")


def _check_port(settings: Settings) -> Iterator[Finding]:
    """Say whether a gateway listens on the port, or another program, or nobody."""
    url_file = settings.data / URL_FILE
    url = url_file.read_text(encoding="utf-8").strip() if url_file.exists() else f"http://127.0.0.1:{settings.port}"
    try:
        status = GatewayClient(url, "none").get("/readyz").body["status"]
        yield Finding("gateway", "ok", f"a gateway answers at {url}: {status}")
        return
    except CallFailed as problem:
        is_in_use = "no gateway answers" not in str(problem)
    if is_in_use:
        advice = "see its log; if it is another program, choose another port"
        yield Finding("gateway", "problem", f"what listens at {url} is no gateway that can take calls", advice)
        return
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", settings.port))
            yield Finding(
                "gateway", "note", f"no gateway runs; port {settings.port} is free", "start it: penstock serve"
            )
        except OSError as problem:
            yield Finding("gateway", "problem", f"port {settings.port}: {problem.strerror}", "choose another port")


def _check_credentials(catalog: Catalog, running: list[dict[str, Any]] | None) -> Iterator[Finding]:
    providers = catalog.providers.describe() if running is None else running
    active = [provider["id"] for provider in providers if provider["on"]]
    found = f"{len(active)} of {len(providers)} are on: {', '.join(active)}" if active else "none is on"
    found += "; in this shell's environment, because no gateway could be asked" if running is None else ""
    advice = "`penstock providers` lists the credential that each of the others needs"
    yield Finding("providers", "ok" if active else "problem", found, "" if len(active) == len(providers) else advice)


def _check_shutdowns(catalog: Catalog) -> Iterator[Finding]:
    """Name the models that a provider in use stops serving within a month, or has stopped serving."""
    for day, provider, model in shutdowns.soon(catalog.providers.active.values(), datetime.now(UTC).date()):
        found = f"{provider} serves {model} only until {day}"
        yield Finding("models", "note", found, "choose another model, or another provider for it")
