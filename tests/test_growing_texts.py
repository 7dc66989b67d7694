"""No text grows piece by piece: to add to a long one copies all of it, so a long stream would take ever longer."""

import ast
from collections.abc import Iterator

from tests.source_tree import Module, modules, nodes, none

# What may grow all the same, and why that is never much.
BOUNDED = {
    ("api", "access_log", "text"): "it is written before it has more than a few kilobytes",
    ("api", "connection", "_url"): "a head that is longer than 40 KiB is refused",
    ("api", "connection", "_unparsed"): "the connection is refused when it has more than 64 KiB",
    ("api", "multipart", "_start"): "64 bytes",
    ("api", "router", "expression"): "the routes, when the process starts",
    ("long_bodies", "base64_pieces", "rest"): "one step and three letters",
    ("long_bodies", "base64_pieces", "text"): "a local str: CPython adds to it without a copy",
    (
        "long_bodies",
        "json_decoding",
        "text",
    ): "a local str: CPython adds to it without a copy",
    ("net", "header_lines", "lines"): "a dozen headers that the gateway itself sends",
    ("upstream", "failure_log", "shown"): "a line of the log",
}


def is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def declared(module: Module) -> Iterator[tuple[str, bool]]:
    """The attributes that a module declares or sets, and whether they are texts."""
    for node in nodes(module):
        if isinstance(node, ast.AnnAssign):
            name = node.target.attr if isinstance(node.target, ast.Attribute) else ast.unparse(node.target)
            yield name, ast.unparse(node.annotation) in ("str", "bytes")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield target.attr, is_text(node.value)


def added_to(node: ast.AST) -> ast.expr | None:
    return node.target if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) else None


def growing_attributes(module: Module, texts: set[str]) -> Iterator[str]:
    """The attributes to which a module adds and that are texts wherever they are declared."""
    others = {name for name, is_one in declared(module) if not is_one}
    for node in nodes(module):
        target = added_to(node)
        if isinstance(target, ast.Attribute) and target.attr in texts - others:
            yield target.attr


def growing_names(module: Module) -> Iterator[str]:
    """The local texts to which a function adds in a loop."""
    for function in nodes(module):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = list(ast.walk(function))
        targets = [
            target for node in inside if isinstance(node, ast.Assign) and is_text(node.value) for target in node.targets
        ]
        texts = {target.id for target in targets if isinstance(target, ast.Name)}
        for loop in inside:
            if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
                found = [added_to(node) for node in ast.walk(loop)]
                yield from (target.id for target in found if isinstance(target, ast.Name) and target.id in texts)


def test_no_text_grows_piece_by_piece() -> None:
    texts = {name for module in modules() for name, is_one in declared(module) if is_one}
    growing = {
        (*module.words, name)
        for module in modules()
        for name in [*growing_attributes(module, texts), *growing_names(module)]
    }
    none(
        f"{'.'.join(place)} grows with `+=`: collect its pieces and join them"
        for place in sorted(growing - BOUNDED.keys())
    )
    none(f"{'.'.join(place)} does not grow any more" for place in sorted(BOUNDED.keys() - growing))
