"""List and redeliver webhook messages, and show and rotate the signing secret."""

from typing import Annotated, Any

import typer

from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report
from penstock.commands.tables import show_table
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.values import OrgId, iso
from penstock.vault import Vault
from penstock.webhooks import records
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import OPERATOR, WebhookSecrets
from penstock.webhooks.sender import Sender

app = typer.Typer(
    no_args_is_help=True, help="List webhook messages and send them again; show and rotate the signing secret."
)


@app.command("list")
def list_messages(
    data: Data = None,
    config: Config = None,
    state: Annotated[
        str | None,
        typer.Option("--status", "--state", help="Only messages with this status: waiting, delivered or exhausted."),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many messages to list.")] = 50,
    as_json: Json = False,
) -> None:
    """List webhook messages, newest first."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        messages = await records.list_messages(store, state, limit)
        return [
            [
                message.id,
                message.event,
                message.state,
                message.deliveries,
                iso(message.created_at_ms),
                message.last_result,
            ]
            for message in messages
        ]

    columns = ["id", "event", "status", "deliveries", "created", "last result"]
    show_table("Messages", columns, with_store(settings, work), as_json)


@app.command()
def redeliver(
    message_id: Annotated[str | None, typer.Argument(help="Id of a message or of its request.")] = None,
    exhausted: Annotated[bool, typer.Option("--exhausted", help="All messages that could not be delivered.")] = False,
    data: Data = None,
    config: Config = None,
    org: Annotated[
        str | None, typer.Option(help="With --exhausted: only messages of this organization; by default of all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Have a running gateway send a delivered or exhausted message again, with the same id and body."""
    settings = load_settings(data=data, config=config)
    if exhausted == (message_id is not None):
        raise ValueError("give either the id of a message or --exhausted")
    if message_id is None:
        owner = None if org is None else OrgId(org)
        count = with_store(
            settings, lambda store, vault: _deliveries(store, vault, settings).redeliver_exhausted(owner)
        )
        report(f"queued {count} messages", as_json, count=count)
        return
    name = message_id if message_id.startswith("msg_") else f"msg_{message_id}"

    async def work(store: Store, vault: Vault) -> None:
        await _deliveries(store, vault, settings).redeliver(name)

    with_store(settings, work)
    report(f"queued {name}", as_json, id=name, state="waiting")


@app.command("secret")
def show_secret(
    data: Data = None,
    config: Config = None,
    org: Org = None,
    alerts: Annotated[bool, typer.Option("--alerts", help="The secret that signs alerts to the operator.")] = False,
    as_json: Json = False,
) -> None:
    """Print the signing secret of an organization, or of alerts."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> str:
        owner = OPERATOR if alerts else await org_id(store, org, settings)
        return await WebhookSecrets(store, vault, Clock()).get_secret(owner)

    secret = with_store(settings, work)
    report(secret, as_json, key=secret)


@app.command()
def rotate(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """Create a new signing secret and print it; for a day, deliveries are signed with both secrets."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> str:
        return await WebhookSecrets(store, vault, Clock()).rotate(await org_id(store, org, settings))

    secret = with_store(settings, work)
    report(secret, as_json, key=secret)


def _deliveries(store: Store, vault: Vault, settings: Settings) -> Deliveries:
    clock = Clock()
    return Deliveries(store, Sender(store, HttpClient(), vault, clock, settings), clock, settings)
