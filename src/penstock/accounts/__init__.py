"""Organizations, their keys, their money and the records of their requests.

Start with `keys`, which authenticates callers, and `transfers`, which holds, captures and releases money in double
entry. `prices` computes what a request costs, `limits` checks the limits of a key, `balances` and `usage` show what is
left and what was spent, and `alerts` tells the operator about it. `orgs` are organizations; `requests` keeps one row
per request; `request_records` and `key_records` are rows as the API shows them, `payloads` the stored bodies of
chat calls, and `response_items` what later calls may refer to.

Many calls of one moment share a transaction: `acceptances` and `generation_ends` begin and end generations,
`chat_reservations` reserves money for chat calls, and `chat_settlement` records and charges those that have ended;
`unsettled` lets calls wait for that where they need the money.
`chat_leases` ends the calls of processes that are gone. `audit` checks that all rows agree.
"""
