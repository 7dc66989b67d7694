"""The calls that make images, videos, sounds and kept transcripts: up to their acceptance, and from the result on.

Start with `endpoints`, which calls the other modules in the order in which things happen: `validate` checks the
fields, `plan` finds the `candidates` and the price, `accept` stores the accepted call in one transaction. Then it is
the turn of `generation_jobs`; `retrieve`, `stream` and `respond` build the responses. `cancel` and `purge` are
endpoints of their own.
"""
