"""Batches: many calls that are checked and priced together, run with a low priority, and paid once each.

Start with `intake`, which checks and stores a batch, and `runner`, which runs the rows of batches. `lines` reads files,
`row_checks` checks and prices a row, `row_runs` brings one to its end, `results` shows what became of them. Chats may
go to providers together: see `vendor_runs`.
"""
