"""Vote blind on the outputs of a trial, by its link and without a key."""

import re

from penstock.api.endpoints.files import read_first_chunk
from penstock.api.fields import checked_fields
from penstock.errors import InvalidRequest
from penstock.fields import field_table, text_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.trials import ballots

_LINK_CHARS = 128
_PAIR_CHARS = 1024
_VOTER = re.compile(rf"[A-Za-z0-9_-]{{{ballots.VOTER_CHARS}}}")
PAIR_FIELDS = field_table(
    text_field("link", "The text behind the `#` of the link.", required=True, max_length=_LINK_CHARS),
    text_field("voter", "What an earlier response gave, so that nobody votes twice on a pair."),
)
VOTE_FIELDS = field_table(
    text_field("pair", "The pair, as it was shown.", required=True, max_length=_PAIR_CHARS),
    text_field("choice", "Which output is better.", required=True, one_of=ballots.VOTES),
)


async def show_pair(gateway: Gateway, call: Call) -> Response:
    """Show two outputs for one prompt under neutral names."""
    fields = checked_fields(call.json, PAIR_FIELDS)
    voter = fields.get("voter")
    if voter is not None and not _VOTER.fullmatch(voter):
        raise InvalidRequest("`voter` must be what an earlier response gave, or left out.", param="voter")
    return Response(json=await ballots.next_pair(gateway, fields["link"], voter))


async def add_vote(gateway: Gateway, call: Call) -> Response:
    """Count a vote, once for each voter and pair."""
    fields = checked_fields(call.json, VOTE_FIELDS)
    return Response(json={"object": "vote", "counted": await ballots.vote(gateway, fields["pair"], fields["choice"])})


async def download_shown(gateway: Gateway, call: Call) -> Response:
    """Send an output that was shown, under a neutral name."""
    found = await ballots.shown_file(gateway, call.path["file"], call.headers.get("range"))
    return await read_first_chunk(found)
