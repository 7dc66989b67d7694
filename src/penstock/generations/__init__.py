"""Images and videos, from the call to the stored result.

Start with `endpoints`, which calls the other modules in the order in which things happen: `validate` checks the
fields, `plan` finds the `candidates` and the price, `accept` stores the accepted call in one transaction, `run` brings
it to its end. `live` tries the candidates, each of the `parts` with an `attempt`: `polling` waits for the provider,
`outputs` downloads and stores what it made; `playback` serves recordings and mocks instead. `finish` ends the
generation, and leaves the result in the `mailbox` of a caller who waits; `retrieve` and `respond` build the responses.
`rows` is what the store keeps of a generation. `orphans` asks about jobs of failed generations, `cancel` and `purge`
are endpoints of their own.
"""
