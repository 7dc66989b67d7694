"""Pages of the documentation as HTML: anchors, tables, code, links, no raw HTML."""

from penstock.web import markdown

PAGE = """# Apples & pears

Read [images](images.md#n), [the code](../src/penstock/gateway.py) and [a site](https://example.com).

<!-- not shown --> <b>raw</b>

## What it costs

| a | b |
| --- | --- |
| `x` | <script>alert(1)</script> |

```sh
curl "$URL" # a comment
```

## What it costs

![A view](images/overview.webp)
"""


def test_headings_have_anchors_that_differ() -> None:
    document = markdown.render("docs/fruit.md", PAGE)
    assert document.title == "Apples & pears"
    assert [heading.anchor for heading in document.headings] == ["apples--pears", "what-it-costs", "what-it-costs-1"]
    assert '<h2 id="what-it-costs-1">' in document.html


def test_links_and_images_lead_to_the_gateway() -> None:
    html = markdown.render("docs/fruit.md", PAGE).html
    assert '<a href="/docs/images#n">images</a>' in html
    assert '<span class="in-repository" title="In the repository: ../src/penstock/gateway.py">the code</span>' in html
    assert '<a href="https://example.com">a site</a>' in html
    assert '<img src="/docs/images/overview.webp" alt="A view"' in html


def test_raw_html_is_left_out() -> None:
    html = markdown.render("docs/fruit.md", PAGE).html
    assert "<script" not in html
    assert "<!--" not in html
    assert "<b>" not in html


def test_code_is_highlighted_and_escaped() -> None:
    html = markdown.render("docs/fruit.md", PAGE).html
    assert '<span class="hl-c1"># a comment</span>' in html
    assert markdown.highlighted("<i>", "no such language") == "&lt;i&gt;"


def test_sections_have_the_text_for_the_search() -> None:
    sections = markdown.render("docs/fruit.md", PAGE).sections
    assert [section.heading.text for section in sections] == ["Apples & pears", "What it costs", "What it costs"]
    assert sections[0].text.startswith("Read images, the code and a site.")
    assert 'curl "$URL"' in sections[1].text


def test_the_navigation_is_the_list_of_links_below_second_headings() -> None:
    start = "## Start\n\n- [Images](images.md): make\n  `them`.\n\n"
    text = f"# Home\n\nWords.\n\n{start}## Project\n\n- [Tour](tour.md): the code.\n"
    groups = markdown.navigation("docs/README.md", text)
    assert groups == {
        "Start": [markdown.Entry("Images", "/docs/images", "make them.")],
        "Project": [markdown.Entry("Tour", "/docs/tour", "the code.")],
    }
