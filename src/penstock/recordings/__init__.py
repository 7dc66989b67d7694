"""Recordings of calls: made, matched, replayed, exported and imported.

`recordings` reads the replay headers of a call, finds the recording that matches it, and stores recordings. `files`
exports a recording to a recording file and imports it from one.
"""
