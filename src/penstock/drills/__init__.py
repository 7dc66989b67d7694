"""Outage drills: what would have become of past requests if a provider had been down, slow or dearer.

Start with `report`, which reads the requests of a window page by page and sums up what `reroute` says of each in a
`scenario`. Nothing is called: it is all computed from records, plans and prices.
"""
