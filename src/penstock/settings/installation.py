"""The settings that say where a gateway runs, who reaches it, and where it keeps its data."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.typed_config import (
    Count,
    Database,
    HostName,
    Origin,
    PublicUrl,
    Secret,
    check_networks,
)


class InstallationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The first part of `Settings`."""

    data: Annotated[Path, Meta(description="Folder for the database, media, keys and penstock.toml.")] = msgspec.field(
        default_factory=partial(Path, "data")
    )
    host: Annotated[str, Meta(description="Host name or IP address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="Port to listen on.")] = 8080
    public_url: Annotated[
        PublicUrl,
        Meta(
            description="URL under which callers reach the gateway; empty: made from host and port. If it is an HTTPS "
            "URL, providers get it for callbacks and input videos."
        ),
    ] = ""
    behind_tls: Annotated[
        bool,
        Meta(
            description="A proxy in front of the gateway provides TLS. This or allow_plain_http is required to listen "
            "beyond this machine."
        ),
    ] = False
    allow_plain_http: Annotated[
        bool,
        Meta(
            description="Listen beyond this machine although keys and prompts travel unencrypted, for example inside a "
            "container whose port only this machine can reach. A warning is logged at each start."
        ),
    ] = False
    processes: Annotated[
        int,
        Meta(
            ge=0,
            description="Processes that serve the port together; 0: one per core on Postgres, one on SQLite. More than "
            "one needs Postgres.",
        ),
    ] = 1
    trusted_proxies: Annotated[
        tuple[str, ...],
        Meta(
            description="IP addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-* headers are believed; "
            "`*`: anybody's."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[HostName, ...],
        Meta(
            description="Host names under which the gateway is reached, without ports. Calls with another Host header "
            "are refused, except health checks. Empty: any host."
        ),
    ] = ()
    session_hours: Annotated[float, Meta(gt=0, le=720, description="How long a session of the pages lasts.")] = 12.0
    cors_origins: Annotated[
        tuple[Origin, ...],
        Meta(
            description="Origins whose pages may call the API from a browser, such as https://app.example.com; `*`: "
            "all. Empty: none."
        ),
    ] = ()
    connections_per_address: Annotated[
        Count,
        Meta(
            description="Maximum connections per client IP (IPv6: per /64 network). Connections of trusted "
            "proxies count for the address in X-Forwarded-For. Each of several `processes` allows as many."
        ),
    ] = 200

    database: Annotated[
        Database, Meta(description="postgresql://… to use Postgres; empty: SQLite in the data folder.")
    ] = ""
    database_connections: Annotated[
        Count, Meta(description="Most connections to Postgres. Several `processes` have equal shares, of 6 at least.")
    ] = 16
    media: Annotated[
        str, Meta(description="s3://bucket/prefix (or gs://, az://) for media; empty: a folder in the data folder.")
    ] = ""
    media_options: Annotated[
        dict[str, str], Meta(description="Options of the object store, such as endpoint, region and timeout.")
    ] = {}
    media_urls: Annotated[
        Literal["gateway", "store"],
        Meta(description="Where URLs of files lead: to the gateway, or to the object store if callers can reach it."),
    ] = "gateway"
    media_public_endpoint: Annotated[
        PublicUrl,
        Meta(
            description="The endpoint under which callers reach the object store, if `media_urls` is store and the "
            "endpoint in `media_options` is for the gateway only."
        ),
    ] = ""
    secret: Annotated[
        Secret, Meta(description="Master secret of at least 32 characters; empty: kept in the data folder.")
    ] = ""
    worker: Annotated[bool, Meta(description="Also run generations and webhooks in the serving process.")] = True

    def __post_init__(self) -> None:
        """Raise ValueError for what the types cannot check."""
        if self.processes > 1 and not self.database:
            raise ValueError(
                f"processes = {self.processes} needs Postgres (the setting `database`): a SQLite database is served by "
                "one process, which writes to it alone"
            )
        if self.media_urls == "store" and not self.media:
            raise ValueError("media_urls = store needs an object store (the setting `media`)")
        if self.media_public_endpoint and self.media_urls != "store":
            raise ValueError("media_public_endpoint needs media_urls = store")
        check_networks(
            "trusted_proxies must be `*`, addresses or", [each for each in self.trusted_proxies if each != "*"]
        )

    @property
    def sqlite_file(self) -> Path:
        """The database in the data folder, which is used if `database` is empty."""
        return self.data / "penstock.db"

    @property
    def base_url(self) -> str:
        """The URL that callers use, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"

    @property
    def url_for_providers(self) -> str:
        """The HTTPS URL under which providers reach the gateway, without a slash at the end; empty if there is none."""
        return self.public_url.rstrip("/") if self.public_url.startswith("https://") else ""
