"""The signature of requests to S3, compared with the examples that AWS has published."""

import hashlib

from penstock.destinations.signature import EMPTY_SHA256, Keys, signed_headers

KEYS = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
HOST = "https://examplebucket.s3.amazonaws.com"
AT_MS = 1_369_353_600_000  # 2013-05-24


def signature(method: str, path: str, headers: dict[str, str], sha256: str = EMPTY_SHA256) -> str:
    sent = signed_headers(method, HOST + path, headers, sha256, KEYS, "us-east-1", AT_MS)
    assert {name: sent[name] for name in headers} == headers
    return sent["authorization"].partition("Signature=")[2]


def test_a_get_is_signed_as_in_the_example_of_aws() -> None:
    expected = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert signature("GET", "/test.txt", {"range": "bytes=0-9"}) == expected


def test_a_put_is_signed_as_in_the_example_of_aws() -> None:
    headers = {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}
    body = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()
    expected = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    assert signature("PUT", "/test%24file.text", headers, body) == expected


def test_keys_are_not_shown() -> None:
    assert KEYS.secret_access_key not in f"{KEYS} {KEYS!r} {[KEYS]}"
