"""How providers take many chat calls together, as a batch that they answer within a day at a lower price."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from penstock.providers.prices import Price, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBatches:
    """Batches with OpenAI's API: a file with a line for each call, and two files with what became of them."""

    price_percent: int  # of the usual prices
    source: Source  # of that
    endpoint: str = "/v1/chat/completions"  # what each line calls
    window: str = "24h"
    window_seconds: int = 24 * 3600

    def prices(self, usual: tuple[Price, ...]) -> tuple[Price, ...]:
        """What the calls of a batch cost, from what they cost alone."""
        return tuple(self._price(price) for price in usual)

    def _price(self, price: Price) -> Price:
        other: Mapping[str, str] = {name: self._part(usd) for name, usd in price.other_usd.items()}
        return replace(
            price,
            usd=self._part(price.usd),
            input_usd=self._part(price.input_usd),
            each_usd=self._part(price.each_usd),
            other_usd=other,
            source=self.source,
        )

    def _part(self, usd: str) -> str:
        return f"{(Decimal(usd) * self.price_percent / 100).normalize():f}"
