"""Parts of JSON Schemas."""

from penstock.api.openapi.schema_parts import TEXT, closed_object, list_of, one_of, open_object, or_null, ref


def test_a_closed_object_allows_no_further_properties() -> None:
    schema = closed_object({"a": TEXT}, optional={"b": TEXT})
    assert (schema["required"], list(schema["properties"])) == (["a"], ["a", "b"])
    assert (schema["additionalProperties"], open_object({})["additionalProperties"]) == (False, True)


def test_every_kind_of_schema_can_be_null() -> None:
    assert or_null(TEXT) == {"type": ["string", "null"]}
    assert or_null(one_of("a")) == {"type": ["string", "null"], "enum": ["a", None]}
    assert or_null(ref("Key")) == {"anyOf": [ref("Key"), {"type": "null"}]}


def test_a_list_has_the_urls_of_other_pages_unless_it_has_one_page() -> None:
    assert "next_page_url" in list_of("Key")["required"]
    assert "next_page_url" not in list_of("Key", pages=False)["properties"]
