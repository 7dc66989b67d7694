"""Images and videos, from the call to the stored result.

Start with `endpoints`, which calls the other modules in the order in which things happen: `validate` checks the
fields, `plan` finds the providers and the price, `accept` writes the promise in one transaction, `run` and `attempt`
carry it out, `respond` builds the answer. `playback` serves recordings and mocks, `orphans` asks about jobs that were
given up.
"""
