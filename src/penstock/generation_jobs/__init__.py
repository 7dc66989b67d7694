"""The job of a generation: a worker brings an accepted one to its end, also after a crash.

Start with `run`. `failover` tries the candidates, each of the `parts` with an `attempt`: `polling` waits for the
provider, `outputs` downloads and stores what it made; `playback` serves recordings and mocks instead. `finish` ends the
generation, and leaves the result in the `mailbox` of a caller who waits. `job` is what these share while it runs,
`rows` is what the store keeps. `orphans` asks about jobs of failed generations.
"""
