"""List models, and search the catalogues of providers for more."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock.commands.data_folder import Config, Data, load_settings
from penstock.commands.gateway_client import Key, Url, find_gateway, running_gateway, say_that_none_runs
from penstock.commands.output import Json, is_piped_out, print_json, say
from penstock.commands.tables import show_table
from penstock.environment import ENVIRONMENT
from penstock.models.catalog import Catalog
from penstock.providers import discover


class _Models(TyperGroup):
    """The commands about models; `penstock models WORDS` is short for `penstock models search WORDS`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, else `search` with all words."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["search", *args])


app = typer.Typer(cls=_Models, help="List models, or search for one.", invoke_without_command=True)
_COLUMNS = ["id", "modes", "providers", "price", "needs"]


@app.callback()
def list_models(
    context: typer.Context,
    data: Data = None,
    config: Config = None,
    url: Url = None,
    key: Key = None,
    off: Annotated[bool, typer.Option("--off", help="Also list models that lack a key, and what they need.")] = False,
    as_json: Json = False,
) -> None:
    """List the models of the running gateway. Without one: those that a gateway started here would have."""
    if context.invoked_subcommand is not None:
        return
    if gateway := running_gateway(url, key, data, config):
        found = gateway.get("/compat/v1/models", off=True).body["data"]
    else:
        catalog = Catalog(discover(), load_settings(data=data, config=config), ENVIRONMENT)
        found = [*catalog.describe_all(), *catalog.describe_off()]
        say_that_none_runs()
    listed = [model for model in found if off or "missing" not in model]
    if as_json:
        print_json(listed)
        return
    _show(listed)
    if len(listed) < len(found) and not is_piped_out():
        say(f"{len(found) - len(listed)} more need a key: penstock models --off, or penstock models WORDS")


def _show(models: list[dict[str, Any]]) -> None:
    """A table with a column for what is missing only where something is."""
    shown = [] if any("missing" in model for model in models) else _COLUMNS[:-1]
    show_table("Models", _COLUMNS, [_row(model) for model in models], on_terminal=shown)


@app.command()
def search(
    words: Annotated[list[str] | None, typer.Argument(help="Words of the model's id or name.")] = None,
    provider: Annotated[
        str | None, typer.Option(help="Search this provider's own catalogue, too: fal, replicate or openrouter.")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Search the running gateway for models, including those that lack a key."""
    gateway = find_gateway(url, key, data, config)
    found = gateway.get("/compat/v1/models", search=" ".join(words or ()), provider=provider, off=True).body
    if as_json:
        print_json(found)
        return
    _show(found["data"])


def _row(model: dict[str, Any]) -> list[str]:
    return [
        model["id"],
        ", ".join(model["modes"]),
        ", ".join(model["providers"]),
        _price(model["pricing"]),
        _needs(model),
    ]


def _needs(model: dict[str, Any]) -> str:
    """The variables of each provider that could serve a model, such as `FAL_KEY or REPLICATE_API_TOKEN`."""
    return " or ".join(" and ".join(names) for names in model.get("missing", {}).values())


def _price(pricing: list[dict[str, Any]]) -> str:
    """The lowest and the highest of today's prices that have the unit of the first one; of tokens, for a million."""
    today = datetime.now(UTC).date().isoformat()
    rows = [row for row in pricing if row["unit"] == pricing[0]["unit"] and row.get("from", "") <= today]
    if not rows:
        return "unknown"
    is_tokens = rows[0]["unit"] == "token"
    input_price = _range([row["input_usd"] for row in rows if "input_usd" in row], is_tokens)
    unit = "million tokens" if is_tokens else rows[0]["unit"]
    return f"{input_price and f'{input_price} in, '}{_range([row['usd'] for row in rows], is_tokens)} USD / {unit}"


def _range(amounts: list[Any], is_tokens: bool) -> str:
    found = sorted({Decimal(str(amount)) * (1_000_000 if is_tokens else 1) for amount in amounts})
    texts = [
        f"{amount:.6f}".rstrip("0").rstrip(".") for amount in (found[:1] + found[-1:] if len(found) > 1 else found)
    ]
    return " to ".join(texts)
