"""Webhooks: what receivers are told when a generation ends, and operators when money runs low.

`events` builds and signs an event and stores it as a message. `deliveries` leases messages, delivers them and retries;
`sender` sends one, and `delivery` has what both work on. `records` shows messages as the API does.
"""
