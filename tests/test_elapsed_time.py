"""No test asserts how long something took: on a busy machine such a test fails although nothing is wrong.

A test may wait for something with a deadline (`assert time.monotonic() < deadline` in a `while`), may read times of the
gateway's manual clock, and may count work (tests/work.py). How fast things are is measured in bench/.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent

# Calls whose value depends on how fast the machine is, as they are written.
CLOCKS = {
    f"time.{name}{unit}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "time")
    for unit in ("", "_ns")
} | {"resource.getrusage", "os.times"}
# What a file that reads one of them has in it; to parse all files would take seconds.
NAMES = re.compile(r"^import time$|^ *from time import|\.time\(|getrusage|cpu_times|os\.times", re.MULTILINE)
# Functions whose result is a time if an argument is one. Of any other call only the object that is called counts.
ARITHMETIC = {"abs", "all", "any", "float", "int", "max", "min", "round", "sorted", "sum", "mean", "median"}
COLLECTING = {"append", "add", "extend"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Scope:
    """A function of a test file with the functions in it, and the names in it whose values come from a clock."""

    def __init__(self, function: Function, clocks: set[str]) -> None:
        self.nodes = list(ast.walk(function))
        self._clocks = clocks
        self._names: set[str] = set()
        known = -1
        while known < len(self._names):  # until nothing new comes from what is known
            known = len(self._names)
            for node in self.nodes:
                for target, value in assignments(node):
                    if self.is_time(value):
                        self._names |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}

    def is_time(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Call):
            return self.is_clock(node) or any(self.is_time(part) for part in parts_that_count(node))
        return any(self.is_time(part) for part in ast.iter_child_nodes(node))

    def is_clock(self, node: ast.AST) -> bool:
        """True for a call that reads a clock, or of a helper that returns what it read."""
        if not isinstance(node, ast.Call):
            return False
        called = ast.unparse(node.func)
        loops = called.endswith(("loop.time", "loop().time"))
        return loops or called in self._clocks or called.endswith(".cpu_times")

    def gives_times(self) -> bool:
        """True if the function returns or yields what comes from a clock."""
        results = (node.value for node in self.nodes if isinstance(node, ast.Return | ast.Yield))
        return any(value is not None and self.is_time(value) for value in results)

    def checks(self) -> Iterator[ast.expr]:
        """The conditions that let the function fail because of a time, without deadlines of waiting loops."""
        waits = {
            id(inner) for node in self.nodes if isinstance(node, ast.While) for inner in ast.walk(node) if inner != node
        }
        for node in self.nodes:
            if not isinstance(node, ast.Assert | ast.If) or (isinstance(node, ast.If) and not fails(node)):
                continue
            if self.is_time(node.test) and not (id(node) in waits and self.is_deadline(node.test)):
                yield node.test

    def is_deadline(self, test: ast.expr) -> bool:
        """`time.monotonic() < deadline`, and whatever else ends the waiting."""
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        return all(
            isinstance(part, ast.Compare) and self.is_clock(part.left) and isinstance(part.comparators[0], ast.Name)
            for part in parts
            if self.is_time(part)
        )


def parts_that_count(call: ast.Call) -> list[ast.expr]:
    called = ast.unparse(call.func).rpartition(".")[2]
    return [call.func, *call.args] if called in ARITHMETIC else [call.func]


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What gets a value here, and the value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield target, value
        case ast.NamedExpr(target=target, value=value) | ast.For(target=target, iter=value):
            yield target, value
        case ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
            yield target, value
        case ast.Call(func=ast.Attribute(value=target, attr=name), args=[value]) if name in COLLECTING:
            yield target, value


def fails(node: ast.If) -> bool:
    """True if the test fails where the condition holds."""
    inside = [inner for statement in node.body for inner in ast.walk(statement)]
    return any(isinstance(inner, ast.Raise) for inner in inside) or any(
        isinstance(inner, ast.Call) and ast.unparse(inner.func) == "pytest.fail" for inner in inside
    )


def clocks_of(tree: ast.Module) -> set[str]:
    """CLOCKS, also under the names under which the file imports them."""
    return CLOCKS | {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in CLOCKS
    }


def checks_of_time(source: str) -> list[str]:
    """The conditions in a test file that depend on how long something took, each with its line."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    clocks = clocks_of(tree)
    helpers = {function.name for function in functions if Scope(function, clocks).gives_times()}
    found = {check for function in functions for check in Scope(function, clocks | helpers).checks()}
    return [f"line {check.lineno}: {ast.unparse(check)}" for check in sorted(found, key=lambda check: check.lineno)]


def test_no_test_asserts_how_long_something_took() -> None:
    sources = {path: path.read_text() for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)}
    assert [
        f"{path.relative_to(TESTS)}, {check}"
        for path, source in sources.items()
        if NAMES.search(source)
        for check in checks_of_time(source)
    ] == []


FORBIDDEN = {
    "directly": "def test():\n assert time.monotonic() - began < 1",
    "by a variable": "def test():\n began = time.perf_counter()\n took = time.perf_counter() - began\n assert took < 1",
    "by an imported name": "from time import process_time as now\ndef test():\n assert now() < 1",
    "after conversions": "def test():\n took_ms = round(1000 * time.process_time())\n assert took_ms <= 5",
    "in a collection": "def test():\n times = []\n times.append(time.perf_counter())\n assert max(times) < 1",
    "for each": "def test():\n times = [time.time_ns()]\n assert all(took < 1 for took in times)",
    "of a process": "def test():\n used = resource.getrusage(0).ru_utime\n assert used < 1",
    "of an event loop": "async def test():\n assert asyncio.get_running_loop().time() - began < 1",
    "by a helper": "def took():\n return time.monotonic() - began\ndef test():\n assert took() < 1",
    "by a helper inside": "def test():\n def took():\n  return time.monotonic()\n assert took() < 1",
    "by a context manager": (
        "def timed():\n took = []\n yield took\n took.append(time.time())\n"
        "def test():\n with timed() as took:\n  pass\n assert took[0] < 1"
    ),
    "without an assertion": "def test():\n if time.monotonic() - began > 1:\n  pytest.fail('too slow')",
    "a deadline without a loop": "def test():\n deadline = time.monotonic() + 5\n assert time.monotonic() < deadline",
    "elapsed time in a loop": "def test():\n while x():\n  assert time.monotonic() - began < 5",
}  # fmt: skip
ALLOWED = {
    "a deadline": "def until():\n deadline = time.monotonic() + 5\n while x():\n  assert time.monotonic() < deadline",
    "a deadline with a reason": (
        "def until():\n deadline = time.monotonic() + 5\n while x():\n"
        "  if died() or time.monotonic() > deadline:\n   raise RuntimeError('gone')"
    ),
    "the manual clock": "def test():\n began = clock.monotonic()\n assert clock.monotonic() - began == 900",
    "a time that is passed on": "def test():\n row = insert(time.time())\n assert row == 1",
}


def test_the_check_knows_what_is_forbidden_and_what_is_allowed() -> None:
    assert [name for name, source in FORBIDDEN.items() if not checks_of_time(source)] == []
    assert {name: found for name, source in ALLOWED.items() if (found := checks_of_time(source))} == {}
