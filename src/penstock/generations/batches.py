"""Make `n` work where the provider lacks it."""


def batches(count: int, most: int) -> list[int]:
    """`count` outputs in as few calls as a provider that makes `most` at once allows."""
    full, rest = divmod(count, most)
    return [most] * full + ([rest] if rest else [])
