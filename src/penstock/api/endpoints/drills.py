"""Say what would have become of the requests of an organization if a provider had been down, slow or dearer."""

from penstock.api import query
from penstock.api.route import Query
from penstock.drills.report import drill_report
from penstock.drills.reroute import Rerouter
from penstock.drills.scenario import read_scenario
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.values import DAY_MS

_MOST_DAYS = 31
DRILL_QUERY = (
    Query(name="down", about="Providers that do not answer, separated by commas."),
    Query(name="slow", about="Providers that take longer, such as `fal=4x`, separated by commas."),
    Query(name="dearer", about="Providers that cost more, such as `fal=1.5x`, separated by commas."),
    Query(name="created_after", type="time", about="From when on; by default a day before the end."),
    Query(name="created_before", type="time", about=f"Until when; by default now. At most {_MOST_DAYS} days later."),
)


async def run_drill(gateway: Gateway, call: Call) -> Response:
    """Report on the requests of a window. Nothing is called, nothing changes."""
    asked = query.read(DRILL_QUERY, call.query)
    names = {name: [item.strip() for item in (asked[name] or "").split(",") if item.strip()] for name in _LISTS}
    scenario = read_scenario(**names, providers=gateway.catalog.providers.known)
    to_ms = gateway.clock.now_ms() if asked["created_before"] is None else asked["created_before"]
    from_ms = to_ms - DAY_MS if asked["created_after"] is None else asked["created_after"]
    if not 0 <= to_ms - from_ms <= _MOST_DAYS * DAY_MS:
        message = f"The window must end after it begins, and have at most {_MOST_DAYS} days."
        raise InvalidRequest(message, param="created_before")
    org_id = call.caller.org_id
    await gateway.chat_settlement.catch_up(org_id)
    rerouter = Rerouter(gateway.catalog, gateway.settings, scenario, to_ms)
    return Response(json=await drill_report(gateway.store, rerouter, [org_id], from_ms, to_ms))


_LISTS = ("down", "slow", "dearer")
