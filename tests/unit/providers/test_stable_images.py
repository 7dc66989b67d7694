"""What is added to calls of Stability's models."""

from penstock.providers.stable_images import add_default_prompt, add_default_strength


def test_what_a_caller_says_is_kept() -> None:
    assert add_default_strength({"strength": 0.2}) == {"strength": 0.2}
    assert add_default_strength({})["strength"] == 0.7
    assert add_default_prompt({"prompt": "a fox"}) == {"prompt": "a fox"}
    assert add_default_prompt({})["prompt"]
