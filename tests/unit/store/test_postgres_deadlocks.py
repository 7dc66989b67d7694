"""Transactions that share the balance of an organization may wait for each other on Postgres, but never in a circle.

`make test-faults` runs every transaction with every other one.
"""

import pytest

from tests.gateway import OpenGateway, postgres_only
from tests.transaction_pairs import (
    accept_image,
    accept_images_of_two_organizations,
    cancel,
    complete_video,
    complete_videos_of_two_organizations,
    fail_video,
    find_deadlocks,
    release_chats,
    settle_chats,
)


@postgres_only
async def test_ends_of_chats_and_generations_do_not_deadlock(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [
        (settle_chats, complete_video),
        (complete_videos_of_two_organizations, cancel),
        (complete_videos_of_two_organizations, accept_images_of_two_organizations),
        (accept_images_of_two_organizations, settle_chats),
        (settle_chats, cancel),
        (fail_video, settle_chats),
        (accept_image, settle_chats),
        (release_chats, settle_chats),
        (release_chats, complete_video),
    ]
    assert not await find_deadlocks(open_gateway, monkeypatch, pairs)
