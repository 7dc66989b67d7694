"""Declare labels, and set budgets for their values."""

from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from penstock.accounts.label_budgets import LabelBudget, list_budgets, remove_budget, set_budget
from penstock.accounts.labels import checked_declarations, declare, read_declared
from penstock.clock import Clock
from penstock.commands.data_folder import Config, Data, Org, load_settings, org_id, with_store
from penstock.commands.output import Json, report, usd
from penstock.commands.tables import show_table
from penstock.errors import NotFound
from penstock.schema import DeclaredLabel
from penstock.store.base import Store
from penstock.values import nanos
from penstock.vault import Vault

Name = Annotated[str, typer.Argument(help="Name of the label, such as customer.")]
Value = Annotated[str, typer.Argument(help="A value of the label, or `*` for each value without a budget of its own.")]

app = typer.Typer(no_args_is_help=True, help="Declare labels, and set budgets for their values.")


@app.command("list")
def list_labels(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List the declared labels of an organization."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> tuple[DeclaredLabel, ...]:
        return await read_declared(store, await org_id(store, org, settings))

    rows = [
        [label.name, label.required, label.budget, label.values if as_json else ", ".join(label.values or ["any"])]
        for label in with_store(settings, work)
    ]
    show_table("Labels", ["name", "required", "budget", "values"], rows, as_json)


@app.command("declare")
def declare_label(
    name: Name,
    required: Annotated[bool, typer.Option("--required", help="Refuse calls without it.")] = False,
    budget: Annotated[bool, typer.Option("--budget", help="Let its values have budgets.")] = False,
    value: Annotated[list[str] | None, typer.Option(help="An allowed value. May be repeated. By default any.")] = None,
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Declare a label, or declare it anew; running gateways notice within two seconds."""
    settings = load_settings(data=data, config=config)
    declared = {"name": name, "required": required, "values": value or None, "budget": budget}

    async def work(store: Store, vault: Vault) -> None:
        owner = await org_id(store, org, settings)
        others = [label for label in await read_declared(store, owner) if label.name != name]
        await declare(store, Clock(), owner, checked_declarations([*map(_fields, others), declared]))

    with_store(settings, work)
    report(f"declared {name}", as_json, **declared)


@app.command("remove")
def remove_label(name: Name, data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """Remove a declared label: calls cannot have it any more. Records keep theirs."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> None:
        owner = await org_id(store, org, settings)
        labels = await read_declared(store, owner)
        others = tuple(label for label in labels if label.name != name)
        if len(others) == len(labels):
            raise NotFound(f"`{name}` is not a declared label.")
        await declare(store, Clock(), owner, others)

    with_store(settings, work)
    report(f"removed {name}", as_json, name=name)


@app.command("budget")
def set_label_budget(
    name: Name,
    value: Value,
    usd_per_month: Annotated[str, typer.Argument(help="Most to spend per UTC month, in USD; `none` for none.")],
    data: Data = None,
    config: Config = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Set or remove the monthly budget of a value."""
    settings = load_settings(data=data, config=config)
    limit = None if usd_per_month == "none" else _amount(usd_per_month)

    async def work(store: Store, vault: Vault) -> None:
        owner = await org_id(store, org, settings)
        if limit is None:
            await remove_budget(store, Clock(), owner, name, value)
        else:
            await set_budget(store, Clock(), owner, name, value, nanos(limit))

    with_store(settings, work)
    done = f"{name}={value} has no budget now" if limit is None else f"{name}={value} may spend {usd(limit)} per month"
    report(done, as_json, name=name, value=value, usd_per_month=limit)


@app.command("budgets")
def show_label_budgets(data: Data = None, config: Config = None, org: Org = None, as_json: Json = False) -> None:
    """List the budgets of values, and what they spent this month."""
    settings = load_settings(data=data, config=config)

    async def work(store: Store, vault: Vault) -> list[LabelBudget]:
        return await list_budgets(store, await org_id(store, org, settings), Clock().now_ms())

    records = [budget.record() for budget in with_store(settings, work)]
    columns = ["name", "value", "usd_per_month", "spent_this_month"]
    show_table("Budgets of labels", columns, [[record[column] for column in columns] for record in records], as_json)


def _fields(label: DeclaredLabel) -> dict[str, object]:
    values = None if label.values is None else list(label.values)
    return {"name": label.name, "required": label.required, "values": values, "budget": label.budget}


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter("it must be an amount in dollars such as 50, or `none`") from None
    if not 0 <= amount <= 1_000_000:
        raise typer.BadParameter("it must be from 0 to 1000000")
    return amount
