"""What calls that make something have in common: a dry run, and headers that record and replay."""

from penstock.accounts.keys import REPLAY_MODES
from penstock.api.route import Header, Query

DRY_RUN = (Query(name="dryRun", type="boolean", default=False, about="Answer what it would cost, and make nothing."),)
VIDEOS_QUERY = (
    Query(name="limit", type="integer", default=20, low=1, high=100, about="How many to return."),
    Query(name="after", about="Id of a video; returns what follows it."),
    Query(name="order", one_of=("asc", "desc"), default="desc", about="Oldest or newest first."),
)

REPLAY = (
    Header(name="X-Service-Replay", one_of=REPLAY_MODES, about="Record this call, or answer it from a recording."),
    Header(
        name="X-Service-Replay-Match",
        one_of=("standard", "strict", "specific", "pinned"),
        default="standard",
        about="When a recording counts as one of this call.",
    ),
    Header(name="X-Service-Replay-Fields", about="Names of fields, separated by commas, for a `specific` match."),
    Header(name="X-Service-Replay-Recording", about="Id of a recording, for a `pinned` match."),
    Header(
        name="X-Service-Replay-Latency",
        default="instant",
        about="`instant`, `real`, or milliseconds to the first and last byte, such as `100,900`.",
    ),
)
