"""Look at webhook messages, send them again, change the signing secret."""

from typing import Annotated, Any

import typer

from penstock.clock import Clock
from penstock.commands.terminal import Config, Data, Org, chosen, org_id, show, with_store
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.store.base import Store
from penstock.values import iso
from penstock.vault import Vault
from penstock.webhooks.deliveries import Deliveries
from penstock.webhooks.events import WebhookSecrets

app = typer.Typer(no_args_is_help=True, help="Webhook messages.")


@app.command("list")
def list_messages(
    data: Data = None,
    config: Config = None,
    state: Annotated[str | None, typer.Option(help="waiting, delivered or exhausted.")] = None,
    limit: Annotated[int, typer.Option(help="How many.")] = 50,
) -> None:
    """List messages, newest first."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[list[Any]]:
        rows = await _deliveries(store, vault, these).list_messages(state, limit)
        return [
            [row["id"], row["event"], row["state"], row["deliveries"], iso(row["created_at_ms"]), row["last_result"]]
            for row in rows
        ]

    show("Messages", ["id", "event", "state", "deliveries", "created", "last result"], with_store(these, work))


@app.command()
def redeliver(message_id: str, data: Data = None, config: Config = None) -> None:
    """Send an ended message again, with the same id and the same bytes; a running gateway picks it up."""
    these = chosen(data=data, config=config)
    name = message_id if message_id.startswith("msg_") else f"msg_{message_id}"

    async def work(store: Store, vault: Vault) -> None:
        await _deliveries(store, vault, these).redeliver(name)

    with_store(these, work)
    typer.echo(f"queued {name}")


@app.command()
def rotate(data: Data = None, config: Config = None, org: Org = None) -> None:
    """Make a new signing secret and print it; deliveries carry both signatures for a day."""
    these = chosen(data=data, config=config)

    async def work(store: Store, vault: Vault) -> str:
        return await WebhookSecrets(store, vault, Clock()).rotate(await org_id(store, org, these))

    typer.echo(with_store(these, work))


def _deliveries(store: Store, vault: Vault, these: Settings) -> Deliveries:
    return Deliveries(store, HttpClient(), vault, Clock(), these)
