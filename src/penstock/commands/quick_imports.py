"""Import the modules of a command in less time."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Inside, imports do without two things that take a third of their time.

    The garbage collector would look again and again at what modules define, none of which is garbage. And structlog
    would import rich, for tracebacks that we do not write; it is made to work where rich is not installed, and None in
    `sys.modules` says so. Modules that show something import rich later, in the functions that use it.
    """
    hides_rich = "rich" not in sys.modules
    collects = gc.isenabled()
    if hides_rich:
        sys.modules["rich"] = None  # type: ignore[assignment]
    gc.disable()
    try:
        yield
    finally:
        if hides_rich:
            del sys.modules["rich"]
        if collects:
            gc.enable()
