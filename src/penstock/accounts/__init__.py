"""Organizations, their keys, their money and the records of their requests.

`keys` tells who is calling and `limits` whether they may. `requests` keeps one row per request. `billing` holds,
captures and releases money in a double-entry ledger, `chat_settlement` does so for many chat calls at once, and
`audit` checks that all of it adds up.
"""
