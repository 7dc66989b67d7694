"""Organizations, their keys, their money and the records of their requests.

`keys` authenticates callers and `limits` checks the limits of a key. `requests` keeps one row per request. `prices`
computes what a request costs, `transfers` holds, captures and releases the money in double entry, `balances` shows what
is left. `chat_reservations` reserves money for chat calls, `chat_settlement` records and charges those that have ended,
in batches, and `chat_leases` ends those whose process is gone. `audit` checks that all rows agree.
"""
