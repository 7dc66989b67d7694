"""Recordings of calls: made, matched, replayed, exported and imported.

`replay_headers` reads what a call asks for, `fingerprints` computes what it is recognised by, and `recordings` finds
the recording that matches it, and stores recordings. `files` exports a recording to a recording file and imports it
from one, and `folders` has such files. `drift` compares two recordings of the same call.
"""
