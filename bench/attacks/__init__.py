"""What bench/neighbours.py does to a gateway: every field at its limit, and attacks that need more than that."""

from bench.attacks import bodies, connections, services  # noqa: F401 - they add their attacks to the table
from bench.attacks.routes import WITHOUT_BODY, walk_route
from bench.attacks.target import ATTACKS, Target

__all__ = ["ATTACKS", "WITHOUT_BODY", "Target", "walk_route"]
