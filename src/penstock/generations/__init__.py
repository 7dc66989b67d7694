"""The calls that make images and videos: from the call to its acceptance, and from the result to the response.

Start with `endpoints`, which calls the other modules in the order in which things happen: `validate` checks the
fields, `plan` finds the `candidates` and the price, `accept` stores the accepted call in one transaction. Then it is
the turn of `generation_jobs`; `retrieve`, `stream` and `respond` build the responses. `cancel` and `purge` are
endpoints of their own.
"""
