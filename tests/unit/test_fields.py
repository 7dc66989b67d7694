"""The fields of each endpoint against the interface."""

import pytest

from penstock.fields import CHAT, EDIT, IMAGE, TABLES, VIDEO, Field, Table

# --------------------------------------------------------------------------------------------------------------- tables

# Field, types, what else the interface says; `!` is required, `=` the default, `..` the range, `<=` the length.
INTERFACE: dict[str, tuple[Table, str]] = {
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
    for task, (table, text) in INTERFACE.items()
    for line in text.strip().splitlines()
]


def agrees(row: Field, word: str) -> bool:
    """Whether a field is as a word of the table above says."""
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
    return word in (row.handling, row.alias_of)


def differences(row: Field, words: list[str]) -> list[str]:
    """In which respects a field is not as a line of the table above says."""
    found = [word for word in words[2:] if not agrees(row, word)]
    if not set(words[1].split(",")) <= set(row.types):
        found.append("types")
    if row.required != ("!" in words):
        found.append("required")
    if (row.default is not None) != any(word.startswith("=") for word in words):
        found.append("default")
    return found


def test_fields_are_as_the_interface_says() -> None:
    problems = {name: differences(table[words[0]], words) for name, table, words in ROWS}
    assert {name: found for name, found in problems.items() if found} == {}


EXTENSIONS = {"session_id", "webhook_url", "media_retention", "aspect_ratio", "resolution", "thinking_level"}
EXTENSIONS |= {"stream", "partial_images", "provider", "generate_audio", "scale_factor"}
EXTENSIONS |= {"labels", "provenance", "idempotency_key", "deliver_to", "deliver_required"}


@pytest.mark.parametrize("task", INTERFACE)
def test_fields_that_are_not_in_the_interface_are_known_extensions(task: str) -> None:
    table, text = INTERFACE[task]
    assert table.keys() - {line.split()[0] for line in text.strip().splitlines()} <= EXTENSIONS


@pytest.mark.parametrize("task", TABLES)
def test_an_alias_has_the_limits_of_its_field(task: str) -> None:
    for row in TABLES[task].values():
        if row.alias_of:
            field = TABLES[task][row.alias_of]
            assert (row.types, row.one_of, row.required) == (field.types, field.one_of, False)


def test_fields_are_listed_by_name_and_described_in_a_sentence() -> None:
    assert all(name == row.name for table in TABLES.values() for name, row in table.items())
    assert all(row.about.endswith(".") for table in TABLES.values() for row in table.values())
