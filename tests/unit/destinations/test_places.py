"""Which buckets, endpoints and paths are taken, and that no value leaves its folder."""

import pytest

from penstock.destinations.places import (
    DEFAULT_PATH,
    MAX_PATH_CHARS,
    MAX_URL_CHARS,
    Place,
    check_path,
    file_path,
    read_place,
)
from penstock.errors import InvalidRequest
from penstock.net.checked_urls import NO_EXCEPTIONS, EgressRules

REGION = "eu-central-1"
LONG = "v" * 400


def path(template: str, **labels: str) -> str:
    return file_path(
        template,
        request_id="req_1",
        position=0,
        content_type="image/jpeg",
        created_at_ms=1_794_744_000_000,
        model=labels.pop("model", "acme/flux 2"),
        task="image",
        labels=labels,
    )


@pytest.mark.parametrize(
    ("url", "region", "endpoint", "expected"),
    [
        ("s3://media", REGION, "", f"https://media.s3.{REGION}.amazonaws.com/a/1.png"),
        ("s3://media/", REGION, "", f"https://media.s3.{REGION}.amazonaws.com/a/1.png"),
        ("s3://media/x=1/y", REGION, "", f"https://media.s3.{REGION}.amazonaws.com/x%3D1/y/a/1.png"),
        ("s3://me.dia/x", REGION, "", f"https://s3.{REGION}.amazonaws.com/me.dia/x/a/1.png"),
        ("s3://media", "cn-north-1", "", "https://media.s3.cn-north-1.amazonaws.com.cn/a/1.png"),
        ("s3://media", REGION, "https://minio.example.com:8443", "https://minio.example.com:8443/media/a/1.png"),
    ],
)
def test_requests_go_to_the_bucket(url: str, region: str, endpoint: str, expected: str) -> None:
    place = read_place(url, region, endpoint, NO_EXCEPTIONS)
    assert place.request_url("a/1.png") == expected
    assert place.shown_url("a/1.png") == f"{url.rstrip('/')}/a/1.png"


@pytest.mark.parametrize(
    ("url", "endpoint", "param"),
    [
        ("https://media", "", "url"),
        ("s3://", "", "url"),
        ("s3://MEDIA", "", "url"),
        ("s3://media/../other", "", "url"),
        ("s3://media/./x", "", "url"),
        ("s3://media//x", "", "url"),
        ("s3://media/a b", "", "url"),
        ("s3://user@media", "", "url"),
        (f"s3://media/{LONG}", "", "url"),
        ("s3://media", "http://minio.example.com", "endpoint"),
        ("s3://media", "https://127.0.0.1", "endpoint"),
        ("s3://media", "https://169.254.169.254", "endpoint"),
        ("s3://media", "https://metadata.google.internal", "endpoint"),
        ("s3://media", "https://minio.example.com:22", "endpoint"),
        ("s3://media", "https://minio.example.com/path", "endpoint"),
        ("s3://media", "https://user:key@minio.example.com", "endpoint"),
    ],
)
def test_other_places_are_refused(url: str, endpoint: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_place(url, REGION, endpoint, NO_EXCEPTIONS)
    assert refused.value.param == param


def test_the_operator_can_allow_an_endpoint() -> None:
    egress = EgressRules(allow_hosts=("minio",))
    assert read_place("s3://MEDIA", REGION, "http://minio:9000", egress).endpoint == "http://minio:9000"
    for region in ("", "a/b", "evil.example.com/"):
        with pytest.raises(InvalidRequest):
            read_place("s3://media", region, "", egress)


@pytest.mark.parametrize(
    "template",
    [
        "",
        "{request_id}.{ext}",
        "{position}.{ext}",
        "/{request_id}/{position}",
        "../{request_id}/{position}",
        "a/../{request_id}/{position}",
        "{request_id}//{position}",
        "{request_id}/{position}/{secret}",
        "{request_id}/{position}?x",
        "{request_id}/{position}{",
        "{request_id}/{position}" + "x" * MAX_PATH_CHARS,
    ],
)
def test_paths_must_stay_in_their_folder_and_differ(template: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_path(template, "path")
    assert refused.value.param == "path"


def test_paths_are_made_of_clean_values() -> None:
    assert path(check_path(DEFAULT_PATH, "path")) == "2026-11-15/req_1/0.jpg"
    template = check_path("{model}/{task}/{label.customer}/{label.none}/{request_id}-{position}", "path")
    assert path(template, customer="ACME & Söhne") == "acme_flux_2/image/ACME___S_hne/none/req_1-0"
    for customer in ("..", ".", "../../x", "/etc", "", "a/../b", "\0"):
        found = path(template, customer=customer)
        assert not {"", ".", ".."} & set(found.split("/"))
        assert len(found.split("/")) == 5


def test_the_longest_path_is_one_that_s3_takes() -> None:
    template = check_path("{model}" * 19 + "{request_id}{position}", "path")
    place = Place("b", LONG[: MAX_URL_CHARS - len("s3://b/")], REGION, "")
    assert len(place.key(path(template, model=LONG))) <= 1024
