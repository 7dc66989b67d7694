"""Of a vector image only what draws is kept, whatever a provider or an imported file contains."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.imaging.convert import BadImage
from penstock.imaging.svg import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, clean, is_cleaned

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
DRAWING = (
    f'{HEAD} width="64" height="48" viewBox="0 0 64 48"><title>A fox &amp; a hare</title><defs>'
    '<linearGradient id="g"><stop offset="0" stop-color="#f60"></stop></linearGradient></defs>'
    "<style>.a{fill:url(#g)}</style>"
    '<g transform="scale(2)"><path class="a" d="M0 0L9 9z" fill="url(#g)"></path><use xlink:href="#g"></use></g>'
    '<image width="1" height="1" href="data:image/png;base64,AAAA"></image><text x="1">a &lt; b</text></svg>'
)
# What must not be left of each of them.
ATTACKS = {
    "<script>alert(1)</script>": "alert",
    '<path onload="alert(1)" d="M0 0"/>': "alert",
    '<path ONCLICK="alert(1)" d="M0 0"/>': "alert",
    '<a href="javascript:alert(1)"><path d="M0 0"/></a>': "javascript",
    '<a xlink:href="java&#10;script:alert(1)"><path d="M0 0"/></a>': "script",
    '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x"/></body></foreignObject>': "img",
    '<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script>': "alert",
    '<g xmlns="http://www.w3.org/1999/xhtml"><iframe src="https://evil.invalid"/></g>': "evil",
    '<image href="https://evil.invalid/x.png"/>': "evil",
    '<image href="data:image/svg+xml;base64,AAAA"/>': "data:",
    '<image href="//evil.invalid/x.png"/>': "evil",
    '<use href="https://evil.invalid/x.svg#a"/>': "evil",
    '<use href="data:image/svg+xml,x#a"/>': "data:",
    '<use href="data:image/png;base64,AAAA"/>': "data:",
    '<use href="#a (https://evil.invalid)"/>': "evil",
    '<image href="data:image/png;base64,AAAA,https://evil.invalid"/>': "evil",
    '<path xmlns:foreign="https://evil.invalid" foreign:id="evil"/>': "evil",
    '<path fill="url(https://evil.invalid/x)"/>': "evil",
    '<path style="background:url( &quot;https://evil.invalid/x&quot;)"/>': "evil",
    '<path style="fill:URL(https://evil.invalid)"/>': "evil",
    "<path style=\"fill:image('https://evil.invalid')\"/>": "evil",
    "<path style=\"fill:image-set('https://evil.invalid' 1x)\"/>": "evil",
    "<path style=\"fill:src('https://evil.invalid')\"/>": "evil",
    '<path style="fill:expression(alert(1))"/>': "alert",
    '<path style="fill:javascript:alert(1)"/>': "alert",
    '<path style="behavior:evil"/>': "evil",
    '<path style="-moz-binding:evil"/>': "evil",
    r'<path style="fill:u\72l(https://evil.invalid)"/>': "evil",
    "<style>@import 'https://evil.invalid/x.css';</style>": "evil",
    "<style>.a{fill:url('https://evil.invalid/x')}</style>": "evil",
    "<style>.a{content:'&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;'}</style>": "alert",
    "<style><script>alert(1)</script></style>": "alert",
    '<title><style>x</style><image href="data:image/png;base64,AAAA"/></title>': "image",
    '<set attributeName="href" to="javascript:alert(1)"/>': "javascript",
    '<animate attributeName="href" values="javascript:alert(1)"/>': "javascript",
    '<handler type="application/ecmascript">alert(1)</handler>': "alert",
    "<metadata>secret</metadata>": "secret",
    "<!-- secret -->": "secret",
    "<?xml-stylesheet href='https://evil.invalid/x.css'?>": "evil",
    "<![CDATA[<script>alert(1)</script>]]>": "<script",
}


def test_a_drawing_is_kept_as_it_is() -> None:
    image = clean(DRAWING.encode())
    assert (image.data.decode(), image.content_type, image.width, image.height) == (DRAWING, "image/svg+xml", 64, 48)


def test_nothing_that_runs_or_fetches_is_left() -> None:
    problems = []
    for attack, sign in ATTACKS.items():
        for wrapped in (attack, f"<g><g>{attack}</g></g>"):
            cleaned = clean(f"{HEAD}>{wrapped}<path d='M1 1'/></svg>".encode()).data.decode()
            if sign in cleaned or "M1 1" not in cleaned:
                problems.append(f"{wrapped} became {cleaned}")
    assert not problems, "\n".join(problems)


def nested(depth: int) -> str:
    return f"{HEAD}>{'<g>' * depth}{'</g>' * depth}</svg>"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('<!DOCTYPE svg [<!ENTITY a "x">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>', "declares entities"),
        (
            '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
            "declares entities",
        ),
        ("<svg></svg>", "not an SVG"),  # in no namespace
        ('<svg xmlns="http://www.w3.org/1999/xhtml"></svg>', "not an SVG"),
        ('<g xmlns="http://www.w3.org/2000/svg"></g>', "not an SVG"),
        (f"{HEAD}><g>", "not well-formed"),
        (nested(MAX_DEPTH), "too many elements"),
        (f"{HEAD}>{'<g/>' * MAX_ELEMENTS}</svg>", "too many elements"),
        (" " * (MAX_BYTES + 1), "more than"),
        ("<html></html>", "not an SVG"),
        ("", "not well-formed"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_other_documents_are_refused(document: str, message: str) -> None:
    with pytest.raises(BadImage, match=message):
        clean(document.encode())


def test_the_deepest_document_is_kept() -> None:
    assert clean(nested(MAX_DEPTH - 1).encode()).data.decode().count("<g>") == MAX_DEPTH - 1


def test_is_cleaned() -> None:
    documents = {
        DRAWING: True,
        DRAWING.replace("<title>", "<title> "): True,
        f"{HEAD} onload='x'></svg>": False,
        "": False,
    }
    found = {document: is_cleaned(document.encode())["is_cleaned"] for document in documents}
    assert found == documents


def test_sizes() -> None:
    sizes = {
        'width="2in" height="1in"': (192, 96),
        'width="72pt" height="36px"': (96, 36),
        'width="25.4mm" height="5.08cm"': (96, 192),
        'width="100%" viewBox="0,0 300 150.4"': (300, 150),
        'viewBox="0 0 -1 5"': (1024, 1024),
        'width="1e9" height="9999999999"': (1024, 1024),
        "": (1024, 1024),
    }
    found = {text: (image.width, image.height) for text in sizes for image in [clean(f"{HEAD} {text}/>".encode())]}
    assert found == sizes


NAMES = some.sampled_from(["g", "path", "style", "title", "text", "script", "a", "image", "foreignObject"])
TEXTS = some.text(some.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12) | some.sampled_from(
    ["\r"]
)
ATTRIBUTES = some.sampled_from(["d", "fill", "href", "xlink:href", "style", "onload", "id"])


@given(some.recursive(TEXTS, lambda inner: some.tuples(NAMES, ATTRIBUTES, TEXTS, some.lists(inner, max_size=3))))
def test_cleaning_again_changes_nothing(tree: Any) -> None:
    def written(part: Any) -> str:
        if isinstance(part, str):
            return "".join(f"&#{ord(letter)};" for letter in part if letter.isprintable() or letter == "\r")
        name, attribute, value, children = part
        return f'<{name} {attribute}="{written(value)}">{"".join(map(written, children))}</{name}>'

    once = clean(f"{HEAD}>{written(tree)}</svg>".encode()).data
    assert clean(once).data == once
