"""An account at a vendor: a credential beside the one of the environment."""

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class VendorAccount:
    """A credential of a provider with its place in the order. Its values change when somebody changes the account, so
    jobs that run already use a rotated credential.
    """

    id: str
    provider: str
    name: str
    credential: str = field(repr=False)
    status: str = "on"  # draining: for the jobs that it has started, not for new ones
    weight: int = 1
    priority: int = 0
    models: tuple[str, ...] | None = None  # ids, or beginnings of ids that end with `*`; None: all
    last_four: str = ""
    version: int = 1
    created_at_ms: int = 0

    def serves(self, model: str) -> bool:
        """Whether new calls of a model may use the account."""
        if self.status != "on":
            return False
        return self.models is None or any(
            model.startswith(name[:-1]) if name.endswith("*") else model == name for name in self.models
        )
