"""Query parameters and headers of calls that make images and videos, and the list of videos."""

from penstock.api import query
from penstock.api.paging import LIMIT
from penstock.api.route import Header, Query
from penstock.gateway import Gateway
from penstock.generations import retrieve
from penstock.schema import Call, Response
from penstock.values import REPLAY_MATCHES, REPLAY_MODES

DRY_RUN = (
    Query(name="dryRun", type="boolean", default=False, about="Return an estimate of the cost and generate nothing."),
)
VIDEOS_QUERY = (
    LIMIT,
    Query(name="after", about="Id of a video; returns what follows it."),
    Query(name="order", one_of=("asc", "desc"), default="desc", about="Oldest or newest first."),
)

REPLAY = (
    Header(name="X-Service-Replay", one_of=REPLAY_MODES, about="Record this call, or serve it from a recording."),
    Header(
        name="X-Service-Replay-Match",
        one_of=REPLAY_MATCHES,
        default="standard",
        about="Which recordings match this call.",
    ),
    Header(name="X-Service-Replay-Fields", about="Names of fields, separated by commas, for a `specific` match."),
    Header(name="X-Service-Replay-Recording", about="Id of a recording, for a `pinned` match."),
    Header(
        name="X-Service-Replay-Latency",
        default="instant",
        about="`instant`, `real`, or milliseconds to the first and last byte, such as `100,900`.",
    ),
)


async def list_videos(gateway: Gateway, call: Call) -> Response:
    asked = query.read(VIDEOS_QUERY, call.query)
    return await retrieve.list_videos(gateway, call, asked["limit"], asked["after"], ascending=asked["order"] == "asc")
