"""Outgoing HTTP.

`client` sends one request and reads one capped reply, `reply` reads it in pieces, and `guard` decides which addresses
may be reached.
"""
