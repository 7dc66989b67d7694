"""Forms: flat names and texts become the fields that a JSON body would have."""

import json
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.multipart import FormReader
from penstock.errors import InvalidRequest
from penstock.fields import EDIT, VIDEO, UploadedFile
from penstock.generations import forms

ONE, TWO = UploadedFile(b"one", "one.png", "image/png"), UploadedFile(b"two", "two.png", "image/png")
ADDRESS = "https://images.example/fox.png"
Form = list[tuple[str, str | UploadedFile]]


# -------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ([("input_reference", ONE)], [ONE]),
        ([("input_reference[]", ONE), ("input_reference[]", TWO)], [ONE, TWO]),
        ([("input_reference", ONE), ("input_reference", TWO)], [ONE, TWO]),
        ([("input_reference[1]", TWO), ("input_reference[0]", ONE)], [ONE, TWO]),  # numbers give the order
        ([("input_reference[]", TWO), ("input_reference[7]", ONE)], [ONE, TWO]),
        ([("input_reference", ADDRESS)], [ADDRESS]),
        ([("input_reference[0]", ADDRESS), ("input_reference[1]", ONE)], [ADDRESS, ONE]),
        ([("input_reference[image_url]", ADDRESS)], [{"image_url": ADDRESS}]),
        ([("input_reference[][image_url]", ADDRESS)] * 2, [{"image_url": ADDRESS}] * 2),
        ([("input_reference[0][image_url]", ADDRESS)], [{"image_url": ADDRESS}]),
        ([("input_reference", json.dumps({"image_url": ADDRESS}))], [{"image_url": ADDRESS}]),
    ],
)
def test_input_references_in_every_notation(form: Form, found: list[Any]) -> None:
    assert forms.read(form, VIDEO) == {"input_reference": found}


@pytest.mark.parametrize("names", [["image"], ["image[]", "image[]"], ["image[0]", "image[1]"], ["image", "image"]])
def test_images_repeat(names: list[str]) -> None:
    form: Form = [(name, UploadedFile(str(number).encode())) for number, name in enumerate(names)]
    assert [file.data for file in forms.read(form, EDIT)["image"]] == [b"0", b"1"][: len(names)]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ([("input_reference[0]", ONE), ("input_reference[0]", TWO)], "`input_reference[0]` was sent twice."),
        ([("input_reference[999999999]", ONE)], "`input_reference[999999999]` is not a name for an input image"),
        ([("input_reference[999999999]", ADDRESS)], "`input_reference[999999999]` is not a name for an input image"),
        ([("input_reference[-1]", ONE)], "`input_reference[-1]` is not a name for an input image"),
        ([("input_reference", "{not json")], "`input_reference` must be an object written as JSON."),
        ([("image", ONE)], "`image` is not a file field."),  # of this endpoint
        ([("prompt", ONE)], "`prompt` is not a file field."),
        ([("anything", ONE)], "`anything` is not a file field."),
    ],
)
def test_input_images_under_a_wrong_name_are_refused(form: Form, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        forms.read(form, VIDEO)
    assert caught.value.message.startswith(words)
    assert caught.value.param == form[-1][0]


# --------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", "2", 2),
        ("n", "-1", -1),
        ("n", "2.0", 2.0),  # not an integer; the table says so
        ("n", " 2", " 2"),
        ("n", "1_0", "1_0"),
        ("n", "٢", "٢"),
        ("n", "9" * 5000, "9" * 5000),
        ("scale_factor", "2.50", 2.5),
        ("scale_factor", "2", 2),
        ("scale_factor", "nan", "nan"),
        ("scale_factor", "1e99", 1e99),
        ("scale_factor", "1e999", "1e999"),
        ("output_compression", "80", 80),
        ("prompt", "42", "42"),  # text stays text
        ("size", "1024x1024", "1024x1024"),
        ("user", "true", "true"),
    ],
)
def test_numbers_are_read_as_numbers(name: str, text: str, value: Any) -> None:
    read = forms.read([(name, text)], EDIT)[name]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("text", ["5", "7.5", "ten"])
def test_seconds_stay_text(text: str) -> None:
    assert forms.read([("seconds", text)], VIDEO) == {"seconds": text}


@pytest.mark.parametrize(
    ("form", "metadata"),
    [
        ([("metadata", '{"a": "1"}')], {"a": "1"}),
        ([("metadata[a]", "1"), ("metadata[b]", "true")], {"a": "1", "b": "true"}),
        ([("metadata[0]", "x")], {"0": "x"}),
        ([("metadata[]", "x")], {"": "x"}),
    ],
)
def test_metadata_is_an_object_of_strings(form: Form, metadata: dict[str, str]) -> None:
    assert forms.read(form, VIDEO) == {"metadata": metadata}


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ([("seed", "42")], {"seed": 42}),
        ([("cfg", "0.5")], {"cfg": 0.5}),
        ([("loop", "true"), ("hdr", "false")], {"loop": True, "hdr": False}),
        ([("code", "007")], {"code": "007"}),  # not how a number is written
        ([("code", "0.50")], {"code": "0.50"}),
        ([("word", "null"), ("empty", "")], {"word": "null", "empty": ""}),
        ([("tags[]", "a"), ("tags[]", "b")], {"tags": ["a", "b"]}),
        ([("tags[1]", "b"), ("tags[0]", "a")], {"tags": ["a", "b"]}),
        ([("tags[]", "a"), ("tags[1]", "b"), ("tags[]", "c")], {"tags": ["a", "b", "c"]}),
        ([("camera[pan]", "3"), ("camera[tilt]", "-1")], {"camera": {"pan": 3, "tilt": -1}}),
        (
            [("loras[][path]", "x"), ("loras[][scale]", "1"), ("loras[][path]", "y"), ("loras[][scale]", "2")],
            {"loras": [{"path": "x", "scale": 1}, {"path": "y", "scale": 2}]},
        ),
        ([("a[b][c][]", "1")], {"a": {"b": {"c": [1]}}}),
        ([("odd[name", "x"), ("[x]", "y")], {"odd[name": "x", "[x]": "y"}),
    ],
)
def test_unknown_fields_are_read_as_text_number_or_boolean(form: Form, fields: dict[str, Any]) -> None:
    assert forms.read(form, VIDEO) == fields


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["seed", "seed"], "`seed` was sent twice."),
        (["prompt", "prompt"], "`prompt` was sent twice."),
        (["metadata[a]", "metadata[a]"], "`metadata[a]` was sent twice."),
        (["a[b]", "a[b]"], "`a[b]` was sent twice."),
        (["a", "a[b]"], "`a[b]` was sent both as one value and as several."),
        (["a[b]", "a[]"], "`a[]` was sent both as one value and as several."),
        (["a[]", "a[b]"], "`a[b]` was sent both as one value and as several."),
        (["a[b]", "a"], "`a` was sent twice."),
        (["a[b][c][d][e][f]"], "`a[b][c][d][e][f]` is nested too deeply."),
        (["metadata"], "`metadata` must be an object written as JSON."),
    ],
)
def test_contradicting_names_are_refused(names: list[str], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        forms.read([(name, "x") for name in names], VIDEO)
    assert (caught.value.message, caught.value.param) == (words, names[-1])


@given(st.lists(st.tuples(st.text("ab[]01", min_size=1, max_size=12), st.text("a1.", max_size=4)), max_size=6))
def test_any_form_is_read_or_refused(form: list[tuple[str, str]]) -> None:
    try:
        read = forms.read(list(form), VIDEO)
    except InvalidRequest:
        return
    json.dumps(read)


# ----------------------------------------------------------------------------------------------------- OpenAI's client


def sent_by_openai(**arguments: Any) -> dict[str, Any]:
    """The form that OpenAI's client sends for these arguments; for videos it always sends a form."""
    received: list[dict[str, Any]] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        reader = FormReader(request.headers["content-type"], 10**6)
        reader.feed(request.read())
        received.append(forms.read(reader.finish(), VIDEO))
        return httpx2.Response(400, json={"error": {"message": "enough"}})

    transport = httpx2.Client(transport=httpx2.MockTransport(respond))
    client = openai.OpenAI(api_key="k", base_url="http://gateway.example", http_client=transport, max_retries=0)
    with pytest.warns(DeprecationWarning, match="Sora"), pytest.raises(openai.BadRequestError):
        client.videos.create(model="m", prompt="p", **arguments)
    return received[0]


def test_openai_client_can_send_every_field() -> None:
    more = {
        "input_reference": [{"image_url": ADDRESS}, {"image_url": ADDRESS + "?2"}],
        "metadata": {"order": "17"},
        "n": 2,
        "seed": 42,
        "loras": [{"path": "x", "scale": 0.5}, {"path": "y", "scale": 2}],
    }
    assert sent_by_openai(seconds="8", extra_body=more) == {"model": "m", "prompt": "p", "seconds": "8", **more}


def test_openai_client_can_send_a_file() -> None:
    read = sent_by_openai(input_reference=b"image data")
    assert [file.data for file in read["input_reference"]] == [b"image data"]


def test_the_role_of_a_video_image_is_part_of_its_name() -> None:
    begin, end = UploadedFile(b"begin"), UploadedFile(b"end")
    form = (("input_reference[last_frame]", end), ("input_reference[first_frame]", begin))
    assert forms.read(form, VIDEO)["input_reference"] == [{"last_frame": end}, {"first_frame": begin}]


def test_an_empty_part_for_an_object_is_an_empty_object() -> None:
    assert forms.read([("provider", "")], EDIT) == {"provider": {}}


def test_empty_fields_are_absent_unless_they_hold_text() -> None:
    """Browsers send every field of a form."""
    form: Form = [("n", ""), ("scale_factor", ""), ("prompt", "")]
    assert forms.read(form, EDIT) == {"prompt": ""}
