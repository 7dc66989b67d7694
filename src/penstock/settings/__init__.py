"""Every setting: its type, its limits, its default and its meaning.

`settings/loading.py` reads them. msgspec checks them against the types of `Settings`, and docs/penstock.schema.json
tells editors the same.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.settings.installation import InstallationSettings
from penstock.typed_config import (
    Count,
    Dollars,
    HostName,
    Pause,
    RetentionTime,
    Seconds,
    WebhookUrl,
    check_networks,
)
from penstock.values import Retention

PREFIX = "PENSTOCK_"
TABLES = ("providers", "models", "guards", "oidc", "proxy_sign_in")  # only in penstock.toml, never in the environment


class Settings(InstallationSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings. The descriptions are the documentation, and the names give the names in the environment."""

    starting_credit_usd: Annotated[Dollars, Meta(description="Credit of the first organization.")] = "10.00"
    billing: Annotated[
        Literal["prepaid", "postpaid"], Meta(description="How new organizations pay: prepaid or postpaid.")
    ] = "prepaid"
    unknown_prices: Annotated[
        Literal["refuse", "flag"],
        Meta(description="A model without a price: refuse it, or flag it and charge nothing."),
    ] = "refuse"
    unknown_unit_hold_usd: Annotated[
        Dollars,
        Meta(
            description="Held for each output of a model without a table whose provider bills units that nobody knows "
            "before the call, such as credits. What it bills above that is not charged."
        ),
    ] = "2.00"

    media_retention: Annotated[
        RetentionTime, Meta(description="How long produced media is kept unless the caller says.")
    ] = "24h"
    media_retention_max: Annotated[RetentionTime, Meta(description="The longest retention a caller may ask for.")] = (
        "30d"
    )
    image_response_format: Annotated[
        Literal["url", "b64_json"],
        Meta(description="How images are returned to callers who do not say: `url`, or `b64_json` as OpenAI does."),
    ] = "url"
    edit_size: Annotated[
        Literal["1024x1024", "auto"],
        Meta(description="Size of edits when the caller gives none: `1024x1024`, or `auto` for the input's size."),
    ] = "1024x1024"
    url_seconds: Annotated[Count, Meta(description="How long the signed URL of an image works.")] = 3600
    payloads: Annotated[
        Literal["none", "media", "all"],
        Meta(
            description="What is stored of ended requests and their responses: `none`, `media` (images and videos) or "
            "`all` (chats and transcripts, too)."
        ),
    ] = "media"
    payload_retention: Annotated[
        RetentionTime, Meta(description="How long prompts and other texts of ended requests are stored.")
    ] = "30d"

    response_item_retention: Annotated[
        RetentionTime,
        Meta(
            description="How long callers can refer to the items of a response by their ids; with `payloads = "
            '"none"` they are not kept.'
        ),
    ] = "24h"

    idempotency_retention: Annotated[
        RetentionTime,
        Meta(description="How long a chat or a change that is sent again with its idempotency key is not made again."),
    ] = "24h"

    batch_rows_at_once: Annotated[Count, Meta(description="Most rows of batches at a time; callers come first.")] = 32
    image_wait_seconds: Annotated[
        Pause, Meta(description="How long a caller waits for an image before UPSTREAM_TIMEOUT.")
    ] = 300.0
    job_deadline_seconds: Annotated[Seconds, Meta(description="After how long an unfinished job fails.")] = 86_400.0
    delivery_seconds: Annotated[Seconds, Meta(description="How long a copy into a bucket is tried.")] = 3600.0
    upstream_seconds: Annotated[Seconds, Meta(description="Longest single call to a provider.")] = 600.0
    stream_seconds: Annotated[
        Seconds,
        Meta(
            description="Longest wait for the provider during one streamed chat response, and for its caller to read."
        ),
    ] = 3600.0
    chat_output_tokens: Annotated[
        Count,
        Meta(description="Most output tokens of a chat call that sets no limit: held for, and sent as its limit."),
    ] = 4096
    poll_seconds_max: Annotated[Seconds, Meta(description="Longest pause between two polls of a job.")] = 60.0
    lease_seconds: Annotated[
        Seconds,
        Meta(
            description="Within this time after a worker died, another one goes on with its jobs. A worker that cannot "
            "write to the database for half of this time may lose its jobs to another."
        ),
    ] = 30.0
    concurrent_jobs: Annotated[
        Count,
        Meta(
            description="Most videos that a worker on Postgres runs at a time, of which one organization has at most "
            "nine tenths, and most generations that a restart on SQLite takes up; others wait. Several `processes` "
            "have equal shares."
        ),
    ] = 10_000

    storage_bytes_per_org: Annotated[
        int,
        Meta(
            ge=0,
            description="Most bytes of files, of requests and recordings, that one organization may have stored; "
            "above, new images, videos and imports are refused. 0: no limit.",
        ),
    ] = 100 * 1024**3
    json_bytes: Annotated[Count, Meta(description="Largest JSON body.")] = 32 * 1024**2
    form_bytes: Annotated[Count, Meta(description="Largest multipart body.")] = 64 * 1024**2
    image_bytes: Annotated[Count, Meta(description="Largest image that a caller may send or name.")] = 20 * 1024**2
    input_audio_bytes: Annotated[Count, Meta(description="Largest sound that a caller may send.")] = 60 * 1024**2
    input_video_bytes: Annotated[Count, Meta(description="Largest video that callers may send or name.")] = 50 * 1024**2
    video_bytes: Annotated[Count, Meta(description="Largest video accepted from a provider.")] = 2 * 1024**3
    receiving_bytes: Annotated[
        Count,
        Meta(
            description="Most bytes of bodies in memory before money is held for their calls; an organization may have "
            "half of them, a key a quarter. Several `processes` have equal shares, each of one largest body at least."
        ),
    ] = 256 * 1024**2
    body_seconds: Annotated[Seconds, Meta(description="How long a caller may take to send its body.")] = 120.0
    drain_seconds: Annotated[Pause, Meta(description="How long SIGTERM waits for unfinished calls.")] = 30.0
    image_workers: Annotated[int, Meta(ge=0, description="Child processes for images and videos; 0: one per core.")] = 0
    sound_workers: Annotated[
        int, Meta(ge=1, description="How many streams of sound are converted at once, each in a child process.")
    ] = 16
    account_voices: Annotated[bool, Meta(description="Whether voices of the operator's accounts are listed.")] = True
    allow_voice_cloning: Annotated[bool, Meta(description="Whether calls may have a voice imitated.")] = False
    open_voice_list: Annotated[
        bool, Meta(description="Whether the lists of voices and of speech models need no key, as Open WebUI asks.")
    ] = False

    provenance: Annotated[
        Literal["", "off", "keep", "sign"],
        Meta(
            description="What becomes of Content Credentials (C2PA): `off` ignores them, `keep` carries over those of "
            "providers, `sign` also signs outputs that have none; empty: `sign` if the extra `provenance` is "
            "installed, else `keep`."
        ),
    ] = ""
    provenance_required: Annotated[
        bool, Meta(description="Deliver no output without Content Credentials; calls cannot turn this off.")
    ] = False
    provenance_certificate: Annotated[
        str,
        Meta(
            description="File with the certificate that signs, in PEM, followed by those of its issuers; empty: one "
            "that the gateway makes itself, which nobody trusts who has not added its root."
        ),
    ] = ""
    provenance_key: Annotated[str, Meta(description="File with the private key of provenance_certificate, in PEM.")] = (
        ""
    )
    provenance_signer: Annotated[
        str, Meta(description="Command that signs instead of provenance_key; see Content Credentials.")
    ] = ""
    provenance_anchors: Annotated[
        str, Meta(description="File with the certificates, in PEM, that count as trusted; empty: the C2PA list.")
    ] = ""
    public_verify: Annotated[
        bool, Meta(description="Let anybody verify files at /verify, without a key: ten a minute from an address.")
    ] = False
    provenance_name_gateway: Annotated[bool, Meta(description="Let seals name this gateway by its public_url.")] = False
    provenance_aigc_producer: Annotated[
        str, Meta(max_length=200, description="Producer in the AIGC label of China's GB 45438; empty: no label.")
    ] = ""
    provenance_timestamp_url: Annotated[
        WebhookUrl, Meta(description="Time-stamp authority (RFC 3161) that says when outputs were signed.")
    ] = ""
    provenance_video_bytes: Annotated[
        int, Meta(ge=0, le=200_000_000, description="Largest video that is sealed, for which it is held in memory.")
    ] = 100_000_000

    router: Annotated[
        str, Meta(description="Provider that gets the chat models that no other provider here lists.")
    ] = "openrouter"
    live_catalogues: Annotated[
        tuple[str, ...],
        Meta(description="Providers of which also models that are not listed here can be called. Empty: none."),
    ] = ("fal", "replicate", "openrouter")
    disabled_providers: Annotated[tuple[str, ...], Meta(description="Slugs of providers to leave out.")] = ()
    own_accounts: Annotated[tuple[str, ...], Meta(description="Providers that take accounts of organizations.")] = ()
    own_account_fee_percent: Annotated[int, Meta(ge=0, le=100, description="Part of the price that these cost.")] = 0
    egress_allow_hosts: Annotated[tuple[HostName, ...], Meta(description="Hosts that egress rules let through.")] = ()
    egress_allow_cidrs: Annotated[tuple[str, ...], Meta(description="Networks that egress rules let through.")] = ()
    ca_file: Annotated[str, Meta(description="PEM file of a further certificate authority to trust.")] = ""
    alert_url: Annotated[
        WebhookUrl,
        Meta(
            description="HTTPS URL that gets a signed webhook when 80 or 100 percent of a monthly budget are used, or "
            "a balance is low, or an account or a bucket fails; empty: none."
        ),
    ] = ""
    alert_balance_usd: Annotated[
        Dollars, Meta(description="A prepaid organization with less than this available has a low balance; 0: never.")
    ] = "5.00"
    invoice_issuer: Annotated[str, Meta(description="Who issues the bills in the export of costs as FOCUS.")] = (
        "Penstock"
    )
    webhook_secret_readers: Annotated[
        Literal["all", "admin"],
        Meta(
            description="Which keys of an organization may read the secret that signs its webhooks: all, or those with "
            "the scope `admin`. Who knows it can forge webhooks."
        ),
    ] = "all"  # noqa: S105 - no secret
    webhook_delays_seconds: Annotated[
        tuple[Pause, ...],
        Meta(
            description="Pauses before each webhook retry. After the last one a message is `exhausted` until somebody "
            "has it sent again. More pauses, up to hours, bridge the time that a receiver is down."
        ),
    ] = (5.0, 15.0, 45.0)
    webhook_timeout_seconds: Annotated[Seconds, Meta(description="Longest webhook delivery.")] = 30.0

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least severe level to log: debug, info, warning or error."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "text", "json"],
        Meta(
            description="How log lines are written: `text` to read, `json` for programs, `auto`: text on a terminal, "
            "otherwise JSON."
        ),
    ] = "auto"
    access_log: Annotated[bool, Meta(description="Log a line for each call, except health checks that succeed.")] = True
    metrics: Annotated[bool, Meta(description="Serve /metrics to keys with the scope metrics or operator.")] = True

    traced_providers: Annotated[
        tuple[str, ...],
        Meta(
            description="Slugs of providers that are sent `traceparent` while tracing is on, such as servers of one's "
            "own. Others are told nothing about traces."
        ),
    ] = ()

    # Checked by models/configured.py, which knows the providers.
    providers: Annotated[
        dict[str, Any], Meta(description="OpenAI-compatible servers and changes to known providers.")
    ] = msgspec.field(default_factory=dict)
    models: Annotated[dict[str, Any], Meta(description="Changes to models: price, weight, aliases and more.")] = (
        msgspec.field(default_factory=dict)
    )

    oidc: Annotated[dict[str, Any], Meta(description="The issuer with which people sign in; see People.")] = (
        msgspec.field(default_factory=dict)
    )
    proxy_sign_in: Annotated[
        dict[str, Any], Meta(description="The headers in which a trusted proxy says who people are; see People.")
    ] = msgspec.field(default_factory=dict)
    guards: Annotated[dict[str, Any], Meta(description="Rules and services that check calls and outputs.")] = (
        msgspec.field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        """Raise ValueError for what the types cannot check."""
        super().__post_init__()
        check_networks("egress_allow_cidrs must be", self.egress_allow_cidrs)
        if Retention.parse(self.media_retention).seconds > Retention.parse(self.media_retention_max).seconds:
            raise ValueError("media_retention is longer than media_retention_max")
        if self.receiving_bytes < max(self.json_bytes, self.form_bytes):
            raise ValueError("receiving_bytes is less than json_bytes or form_bytes")
