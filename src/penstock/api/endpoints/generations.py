"""Query parameters and headers of calls that make images, videos and speech, and the lists of videos and sounds."""

from penstock.api import query
from penstock.api.paging import LIMIT
from penstock.api.route import Header, Query
from penstock.gateway import Gateway
from penstock.generations import retrieve, sounds
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
SOUNDS_QUERY = (
    LIMIT,
    Query(name="after", about="Id of a sound; returns what follows it."),
    Query(name="order", one_of=("asc", "desc"), default="desc", about="Oldest or newest first."),
)
TRANSCRIPTS_QUERY = (
    LIMIT,
    Query(name="after", about="Id of a transcript; returns what follows it."),
    Query(name="order", one_of=("asc", "desc"), default="desc", about="Oldest or newest first."),
)
SPEECH_QUERY = (
    *DRY_RUN,
    Query(
        name="data",
        one_of=("url", "b64_json"),
        default="url",
        about="How a response in JSON has the sound: by URL, or in base64.",
    ),
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
FAULT = Header(
    name="X-Service-Fault",
    about="Faults that are to happen in this call, such as `fal=503 for 60s`; for keys with the `faults` scope.",
)
CALL_HEADERS = (*REPLAY, FAULT)


async def list_sounds(gateway: Gateway, call: Call) -> Response:
    asked = query.read(SOUNDS_QUERY, call.query)
    return await sounds.list_sounds(gateway, call, asked["limit"], asked["after"], ascending=asked["order"] == "asc")


async def list_transcripts(gateway: Gateway, call: Call) -> Response:
    asked = query.read(TRANSCRIPTS_QUERY, call.query)
    ascending = asked["order"] == "asc"
    return await sounds.list_sounds(
        gateway, call, asked["limit"], asked["after"], sounds.TRANSCRIPTS, ascending=ascending
    )


async def list_videos(gateway: Gateway, call: Call) -> Response:
    asked = query.read(VIDEOS_QUERY, call.query)
    return await retrieve.list_videos(gateway, call, asked["limit"], asked["after"], ascending=asked["order"] == "asc")
