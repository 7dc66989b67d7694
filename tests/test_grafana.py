"""Every query of the Grafana dashboard finds its metrics and labels in what a gateway serves at /metrics."""

import re
from collections.abc import Iterator
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.api.http_calls import served_api
from tests.gateway import OpenGateway, sqlite_only
from tests.grafana import DASHBOARD, ROOT, queries

ADDED_BY_PROMETHEUS = {"job", "instance"}
_FUNCTIONS = {"sum", "max", "rate", "histogram_quantile", "by", "label_values", "or", "vector"}

_SELECTOR = re.compile(r"\b(penstock_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"[^"]*"')
_GROUPING = re.compile(r"\b(?:by|without) \(([^)]*)\)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def problems_of(expression: str, legend: str, served: dict[str, set[str]]) -> Iterator[str]:
    """What is wrong with a query, given the label names of each served metric."""
    selectors = _SELECTOR.findall(expression)
    if not selectors:
        yield "it has no metric"
    known: set[str] = set(ADDED_BY_PROMETHEUS)
    for name, matchers in selectors:
        if name not in served:
            yield f"{name} is not served"
            continue
        known |= served[name]
        used = _MATCHER.findall(matchers)
        if matchers and ",".join(re.findall(r'\w+(?:=~|!~|!=|=)"[^"]*"', matchers)) != matchers:
            yield f"{matchers} is malformed"
        yield from (f"{name} has no label {label}" for label in used if label not in served[name] | ADDED_BY_PROMETHEUS)
    grouped = {label.strip() for group in _GROUPING.findall(expression) for label in group.split(",")}
    yield from (f"no metric has the label {label}" for label in grouped - known)
    unknown = [label for label in re.findall(r"{{(\w+)}}", legend) if label not in grouped]
    yield from (f"the legend names {label}, which is not grouped by" for label in unknown)
    if expression.count("(") != expression.count(")"):
        yield "parentheses do not match"
    rest = re.sub(r"\[\$__rate_interval\]|\"[^\"]*\"", "", _GROUPING.sub("by", _SELECTOR.sub("", expression)))
    yield from (f"{word} is not a known function" for word in _WORD.findall(rest) if word not in _FUNCTIONS)


@sqlite_only
async def test_every_query_of_the_dashboard_can_be_computed(open_gateway: OpenGateway) -> None:
    served: dict[str, set[str]] = {}
    async with served_api(open_gateway) as api:
        await api.image()
        await api.chat()
        await api.chat(stream=True)
        response = await api.call("GET", "/metrics")
    for family in text_string_to_metric_families(response.body.decode()):
        for sample in family.samples:
            served.setdefault(sample.name, set()).update(sample.labels)
    rules = (ROOT / "deploy" / "prometheus" / "rules.yml").read_text()
    assert set(re.findall(r"\bpenstock_\w+", rules)) <= served.keys(), "an alert on what is not served never fires"
    found = {title: list(problems_of(query, legend, served)) for title, query, legend in queries()}
    wrong = {title: problems for title, problems in found.items() if problems}
    assert wrong == {}
    (variable,) = [found for found in DASHBOARD["templating"]["list"] if found["type"] == "query"]
    assert not list(problems_of(variable["query"]["query"].replace(", job", ""), "", served))
    shown = {name for _, query, _ in queries() for name, _ in _SELECTOR.findall(query)}
    families = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in served if name.startswith("penstock_")}
    left_out = families - {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in shown}
    # The attempts say more, and a date is no curve.
    assert left_out == {"penstock_provider_calls", "penstock_provenance_certificate_expires_seconds"}


def test_wrong_queries_are_found() -> None:
    served = {"penstock_x_total": {"path"}}
    cases: dict[str, tuple[str, str]] = {
        "sum(rate(penstock_y_total[5m]))": ("", "penstock_y_total is not served"),
        'sum(penstock_x_total{status="1"})': ("", "penstock_x_total has no label status"),
        "sum by (model) (penstock_x_total)": ("", "no metric has the label model"),
        "sum by (path) (penstock_x_total)": ("{{status}}", "the legend names status, which is not grouped by"),
        "sum(penstock_x_total": ("", "parentheses do not match"),
        "summe(penstock_x_total)": ("", "summe is not a known function"),
        "1 + 1": ("", "it has no metric"),
    }
    found = {query: list(problems_of(query, legend, served)) for query, (legend, _) in cases.items()}
    missed = [query for query, (_, problem) in cases.items() if problem not in found[query]]
    assert missed == []


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    places: dict[tuple[int, int], str] = {}
    overlapping = []
    panel: dict[str, Any]
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in places or x >= 24:
                    overlapping.append(panel["title"])
                places[x, y] = panel["title"]
    assert overlapping == []
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
