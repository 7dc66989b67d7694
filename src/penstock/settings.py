"""Every setting, its default and its one-line meaning."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from penstock.values import Retention, nanos

PREFIX = "PENSTOCK_"


def _setting(default: Any, about: str) -> Any:
    if isinstance(default, tuple | dict):
        return field(default_factory=lambda: default, metadata={"about": about})
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One table that is defaults, documentation and environment names at once."""

    data: Path = _setting(Path("data"), "Folder for the database, media, keys and penstock.toml.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8080, "Port to listen on.")
    public_url: str = _setting("", "Address callers reach us at, for media addresses; empty: taken from host and port.")
    behind_tls: bool = _setting(False, "Something in front of us speaks TLS; required to listen beyond this machine.")
    trusted_proxies: tuple[str, ...] = _setting((), "Addresses whose X-Forwarded-* headers are believed.")

    database: str = _setting("", "postgresql://… to use Postgres; empty: SQLite in the data folder.")
    database_connections: int = _setting(16, "Most connections to Postgres from one process.")
    media: str = _setting("", "s3://bucket/prefix (or gs://, az://) for media; empty: a folder beside the data.")
    media_options: Mapping[str, str] = _setting({}, "Options of the object store, such as endpoint and region.")
    secret: str = _setting("", "Master secret of at least 32 characters; empty: kept in the data folder.")
    worker: bool = _setting(True, "Also drive videos and webhooks in the serving process.")

    starting_credit_usd: str = _setting("10.00", "What the first organization starts with.")
    billing: str = _setting("prepaid", "How new organizations pay: prepaid or postpaid.")
    unknown_prices: str = _setting("refuse", "A model without a price: refuse it, or flag it and charge nothing.")

    media_retention: str = _setting("24h", "How long produced media is kept unless the caller says.")
    media_retention_max: str = _setting("30d", "The longest retention a caller may ask for.")
    url_seconds: int = _setting(3600, "How long an image's signed address works.")
    payloads: str = _setting("media", "Whose bodies are stored until purged: none, media (not chat) or all.")

    image_wait_seconds: float = _setting(300.0, "How long a caller waits for an image before UPSTREAM_TIMEOUT.")
    job_deadline_seconds: float = _setting(86_400.0, "When an unfinished generation is given up.")
    reconcile_seconds: float = _setting(120.0, "How long to look for a submission whose outcome is unknown.")
    upstream_seconds: float = _setting(600.0, "Longest single call to a provider.")
    stream_seconds: float = _setting(3600.0, "Longest streamed chat answer.")
    chat_output_tokens: int = _setting(4096, "Tokens to set money aside for when a chat call sets no max_tokens.")
    poll_seconds_max: float = _setting(60.0, "Longest pause between two polls.")
    lease_seconds: float = _setting(30.0, "After how long without a sign of life another worker takes a job over.")
    jobs_at_once: int = _setting(10_000, "Most generations one process drives at a time.")

    json_bytes: int = _setting(32 * 1024**2, "Largest JSON body.")
    form_bytes: int = _setting(64 * 1024**2, "Largest multipart body.")
    picture_bytes: int = _setting(20 * 1024**2, "Largest picture a caller may send or name.")
    video_bytes: int = _setting(2 * 1024**3, "Largest video accepted from a provider.")
    body_seconds: float = _setting(120.0, "How long a caller may take to send its body.")
    drain_seconds: float = _setting(30.0, "How long SIGTERM waits for calls under way.")
    picture_workers: int = _setting(0, "Child processes for pictures and clips; 0: one per core.")

    router: str = _setting("openrouter", "Provider that gets chat models nobody else serves.")
    disabled_providers: tuple[str, ...] = _setting((), "Slugs of providers to leave out.")
    egress_allow_hosts: tuple[str, ...] = _setting((), "Hosts that the address guard lets through.")
    egress_allow_cidrs: tuple[str, ...] = _setting((), "Networks that the address guard lets through.")
    ca_file: str = _setting("", "PEM file of a further certificate authority to trust.")
    webhook_delays_seconds: tuple[float, ...] = _setting((5.0, 15.0, 45.0), "Pauses before each webhook retry.")
    webhook_timeout_seconds: float = _setting(30.0, "Longest webhook attempt.")

    log_level: str = _setting("info", "debug, info, warning or error.")
    metrics: bool = _setting(True, "Serve /metrics to keys with the admin scope.")
    tracing: bool = _setting(False, "Send OpenTelemetry traces, as OTEL_* variables say.")

    # Tables of penstock.toml; not settable from the environment.
    providers: Mapping[str, Any] = _setting({}, "OpenAI-compatible endpoints and changes to known providers.")
    models: Mapping[str, Any] = _setting({}, "Changes to known models: price, priority, weight, enabled.")

    def __post_init__(self) -> None:
        if self.billing not in ("prepaid", "postpaid"):
            raise ValueError("billing must be prepaid or postpaid")
        if self.payloads not in ("none", "media", "all"):
            raise ValueError("payloads must be none, media or all")
        if self.unknown_prices not in ("refuse", "flag"):
            raise ValueError("unknown_prices must be refuse or flag")
        if self.secret and len(self.secret) < 32:
            raise ValueError("secret must have at least 32 characters")
        nanos(self.starting_credit_usd)
        if Retention.parse(self.media_retention).seconds > Retention.parse(self.media_retention_max).seconds:
            raise ValueError("media_retention is longer than media_retention_max")

    @property
    def base_url(self) -> str:
        return self.public_url.rstrip("/") or f"http://{self.host}:{self.port}"


TABLES = ("providers", "models")


def load(overrides: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Settings:
    """Defaults, then penstock.toml, then PENSTOCK_* variables, then what the command line said."""
    said = {name: value for name, value in overrides.items() if value is not None}
    config = said.pop("config", None) or environ.get(PREFIX + "CONFIG")
    data = Path(said.get("data") or environ.get(PREFIX + "DATA") or "data")
    path = Path(config) if config else data / "penstock.toml"
    if config and not path.is_file():
        raise ValueError(f"no such file: {path}")
    written = tomllib.loads(path.read_text()) if path.is_file() else {}
    kinds = {item.name: item.type for item in fields(Settings)}
    if unknown := sorted(set(written) - set(kinds)):
        raise ValueError(f"{path.name} has unknown settings: {', '.join(unknown)}")
    from_environ = {
        name: environ[PREFIX + name.upper()]
        for name in kinds
        if name not in TABLES and PREFIX + name.upper() in environ
    }
    values = {**written, **from_environ, **said}
    return Settings(**{name: _read(name, kinds[name], value) for name, value in values.items()})


def _read(name: str, kind: Any, value: Any) -> Any:
    """A value of toml, the environment or the command line as the type of its setting."""
    try:
        return _READERS[str(kind)](value)
    except (ValueError, TypeError, KeyError) as problem:
        raise ValueError(f"{name}: {value!r} is not a {_words(kind)}") from problem


def _words(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _flag(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    return value if isinstance(value, bool) else words[str(value).lower()]


def _list(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    return tuple(str(item).strip() for item in items if str(item).strip())


def _pairs(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return dict(pair.split("=", 1) for pair in _list(value))
    return dict(value)


_READERS: Mapping[str, Any] = {
    str(str): str,
    str(int): int,
    str(float): float,
    str(bool): _flag,
    str(Path): Path,
    str(tuple[str, ...]): _list,
    str(tuple[float, ...]): lambda value: tuple(float(item) for item in _list(value)),
    str(Mapping[str, str]): _pairs,
    str(Mapping[str, Any]): _pairs,
}


def rows() -> list[tuple[str, str, str, str]]:
    """Name, environment name, default and meaning of each setting, for `penstock settings` and the docs."""
    table = []
    for item in fields(Settings):
        default = item.default_factory() if callable(item.default_factory) else item.default
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        shown = shown.lower() if isinstance(default, bool) else shown.replace("{}", "")
        variable = "" if item.name in TABLES else PREFIX + item.name.upper()
        table.append((item.name, variable, shown, item.metadata["about"]))
    return table
