"""Name the models of an organization: a call that asks for an alias gets the model that it stands for."""

from penstock.accounts.aliases import check_alias, read_aliases, remove_alias, set_alias
from penstock.api.fields import checked_fields
from penstock.fields import field_table, text_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response

_LONGEST_MODEL = 256
ALIAS_FIELDS = field_table(
    text_field("model", "The model that calls for the alias get.", required=True, max_length=_LONGEST_MODEL),
)


async def list_aliases(gateway: Gateway, call: Call) -> Response:
    aliases = await read_aliases(gateway.store, call.caller.org_id)
    return Response(json={"object": "list", "data": [_shown(name, model) for name, model in sorted(aliases.items())]})


async def put_alias(gateway: Gateway, call: Call) -> Response:
    """Add or change an alias. Its name may be that of a model: then calls for that model get the other one."""
    name = call.path["alias"]
    model = checked_fields(call.json, ALIAS_FIELDS)["model"]
    check_alias(name, model)
    org_id = call.caller.org_id
    await gateway.live_models.prepare(model, org_id)
    if not gateway.catalog.serving(model):
        gateway.catalog.find(model, ("chat",))  # of a provider that takes any model; or this raises the reason
    await set_alias(gateway.store, gateway.clock, org_id, name, model)
    gateway.keys.forget_org(org_id)
    return Response(json=_shown(name, model))


async def delete_alias(gateway: Gateway, call: Call) -> Response:
    org_id = call.caller.org_id
    await remove_alias(gateway.store, gateway.clock, org_id, call.path["alias"])
    gateway.keys.forget_org(org_id)
    return Response(status=204)


def _shown(name: str, model: str) -> dict[str, str]:
    return {"object": "alias", "name": name, "model": model}
