"""The parameter tables against the interface, row by row; requests and calls as values."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.schema import CHAT, EDIT, IMAGE, TABLES, VIDEO, Call, Caller, Field, Input, Request, Table

# Field, types, what else the interface says; `!` is required, `=` the default, `..` the range, `<=` the length.
TEXTS: dict[str, tuple[Table, str]] = {
    "image": (
        IMAGE,
        """
        prompt              string   ! renamed
        model               string   !
        n                   integer  1..10  =1  emulated
        size                string   =1024x1024  converted
        quality             string   =standard  passthrough  standard|hd
        response_format     string   =url  emulated  url|b64_json
        output_format       string   =png  emulated  png|jpeg|gif|webp|avif
        output_compression  integer  1..100  =100  emulated
        style               string   =vivid  passthrough  vivid|natural
        thinking            string   converted  off|on|minimal|high
        thinking_level      string   thinking
        prompt_enhancement  string   converted  on|off
        user                string   passthrough
        """,
    ),
    "edit": (
        EDIT,
        """
        image               file,array  ! renamed
        prompt              string      renamed
        model               string      !
        mask                file        passthrough
        n                   integer     1..10  =1  emulated
        size                string      =1024x1024  converted
        quality             string      =auto  passthrough  auto|low|medium|high|standard|hd
        response_format     string      =url  emulated  url|b64_json
        output_format       string      =png  emulated  png|jpeg|gif|webp|avif
        output_compression  integer     1..100  =100  emulated
        scale_factor        number      renamed
        thinking            string      converted  off|on|minimal|high
        prompt_enhancement  string      converted  on|off
        user                string      passthrough
        """,
    ),
    "video": (
        VIDEO,
        """
        prompt            string         ! renamed
        model             string         !
        seconds           string,number  converted
        duration          string,number  seconds
        size              string         converted
        n                 integer        1..4  =1  emulated
        aspect_ratio      string         converted
        resolution        string         converted  720p|1080p
        input_reference   object,array   renamed
        negative_prompt   string         <=5000  renamed
        media_retention   string
        webhook_url       string
        idempotency_key   string         <=256
        metadata          object
        user              string         passthrough
        """,
    ),
    "chat": (
        CHAT,
        """
        model              string        !
        messages           array         !
        stream             boolean       =False
        temperature        number        0..2  =1
        max_tokens         integer
        top_p              number        =1
        frequency_penalty  number        -2..2  =0
        presence_penalty   number        -2..2  =0
        stop               string,array
        tools              array
        tool_choice        string,object
        response_format    object
        seed               integer
        user               string
        logprobs           boolean       =False
        top_logprobs       integer       0..20
        stream_options     object
        """,
    ),
}
ROWS = [
    (f"{task}.{line.split()[0]}", table, line.split())
    for task, (table, text) in TEXTS.items()
    for line in text.strip().splitlines()
]


def keeps(row: Field, word: str) -> bool:
    """Whether a row says what a word of the table above says."""
    if word == "!":
        return row.required
    if word.startswith("="):
        return str(row.default) == word[1:]
    if word.startswith("<="):
        return row.max_length == int(word[2:])
    if ".." in word:
        low, high = word.split("..")
        return (row.low, row.high) == (float(low), float(high))
    if "|" in word:
        return set(word.split("|")) <= set(row.one_of)
    return word in (row.handling, row.same_as)


@pytest.mark.parametrize(("name", "table", "words"), ROWS, ids=[name for name, _, _ in ROWS])
def test_a_row_says_what_the_interface_says(name: str, table: Table, words: list[str]) -> None:
    row = table[words[0]]
    assert set(words[1].split(",")) <= set(row.types)
    assert [word for word in words[2:] if not keeps(row, word)] == []
    assert row.required == ("!" in words)
    assert (row.default is not None) == any(word.startswith("=") for word in words)


EXTENSIONS = {"session_id", "webhook_url", "media_retention", "aspect_ratio", "resolution", "thinking_level"}


@pytest.mark.parametrize("task", TEXTS)
def test_beyond_the_interface_there_are_only_our_extensions(task: str) -> None:
    table, text = TEXTS[task]
    assert table.keys() - {line.split()[0] for line in text.strip().splitlines()} <= EXTENSIONS


@pytest.mark.parametrize("task", TABLES)
def test_other_names_belong_to_a_field_with_the_same_limits(task: str) -> None:
    for row in TABLES[task].values():
        if row.same_as:
            proper = TABLES[task][row.same_as]
            assert (row.types, row.one_of, row.required) == (proper.types, proper.one_of, False)


def test_rows_go_by_their_names() -> None:
    assert all(name == row.name for table in TABLES.values() for name, row in table.items())
    assert all(row.about.endswith(".") for table in TABLES.values() for row in table.values())


# ------------------------------------------------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("task", "values", "shape"),
    [
        ("image", {}, "1024x1024"),
        ("edit", {}, "1024x1024"),
        ("upscale", {}, None),  # the picture's own
        ("video", {}, None),
        ("upscale", {"size": "2:1"}, "2:1"),
        ("video", {"aspect_ratio": "1:1"}, "1:1"),
        ("video", {"resolution": "720p"}, "16:9"),
        ("image", {"resolution": "720p"}, "1:1"),
        ("video", {"size": "640x360", "aspect_ratio": "1:1", "resolution": "1080p"}, "640x360"),
        ("video", {"size": "9:16", "aspect_ratio": "1:1"}, "9:16"),
    ],
)
def test_d6_shape(task: str, values: dict[str, Any], shape: str | None) -> None:
    frame = Request(task=task, model="m", values=values).frame
    assert (frame.size if frame else None) == shape


@pytest.mark.parametrize(
    ("task", "values", "shape"),
    [
        ("edit", {"size": "auto"}, "300x201"),
        ("edit", {"size": "auto", "resolution": "720p"}, "100:67"),
        ("edit", {"size": "auto", "aspect_ratio": "1:1"}, "1:1"),
        ("edit", {}, "1024x1024"),
        ("edit", {"size": "64x64"}, "64x64"),
        ("upscale", {"size": "auto"}, None),
    ],
)
def test_an_edit_may_take_the_shape_of_its_first_picture(task: str, values: dict[str, Any], shape: str | None) -> None:
    sides = {"mask": (9, 9), "image": (300, 201)}
    inputs = tuple(Input(role, "med_1", "image/png", *sides[role], 1) for role in ("mask", "image"))
    frame = Request(task=task, model="m", values=values, inputs=inputs).frame
    assert (frame.size if frame else None) == shape


def test_auto_without_a_picture_is_the_usual_size() -> None:
    frame = Request(task="edit", model="m", values={"size": "auto"}).frame  # before its pictures were loaded
    assert frame is not None
    assert frame.size == "1024x1024"


def test_a_request_survives_being_stored() -> None:
    request = Request(
        task="video",
        model="m",
        values={"prompt": "🦊", "seconds": 7.5, "n": 2},
        extras={"seed": 42, "nested": [{"a": None}]},
        inputs=(Input("reference", "med_1", "image/png", 4, 3, 99),),
        metadata={"order": "17"},
    )
    assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request
    assert (request.n, request.seconds) == (2, 7.5)


# ---------------------------------------------------------------------------------------------------------------- calls

CALL = Call(id="req_1", caller=Caller("org_1", "key_1"), endpoint="", at_ms=0, started=0.0)


@pytest.mark.parametrize(
    ("query", "dry"),
    [({}, False), ({"dryRun": "true"}, True), ({"dryRun": "TRUE"}, True), ({"dryRun": "false"}, False)],
)
def test_d3_a_dry_run_is_asked_for(query: dict[str, str], dry: bool) -> None:
    assert msgspec.structs.replace(CALL, query=query).dry_run is dry


@pytest.mark.parametrize("limit", ["requests_per_minute", "concurrent_requests", "nanos_per_day"])
def test_d13_a_key_has_no_limits_unless_one_is_set(limit: str) -> None:
    assert not Caller("org_1", "key_1").is_limited
    said: dict[str, Any] = {limit: 0}
    assert replace(Caller("org_1", "key_1"), **said).is_limited
