"""What a service is told about a call."""

from penstock.guards.verdicts import describe, encoded_images
from penstock.values import InputFile


def test_a_very_long_prompt_is_cut_and_says_so() -> None:
    question = describe("chat", "m", "x" * 100_001, {}, None)
    assert (len(question["prompt"]), question["is_prompt_whole"]) == (100_000, False)


def test_only_small_images_are_sent_and_at_most_four() -> None:
    small = InputFile(b"1", "image/png", 1, 1, "image")
    large = InputFile(b"1" * (1024 * 1024 + 1), "image/png", 1, 1, "image")
    film = InputFile(b"1", "video/mp4", 1, 1, "edit_video")
    assert encoded_images([large, film, small]) == [{"content_type": "image/png", "data": "MQ=="}]
    assert len(encoded_images([small] * 5)) == 4
