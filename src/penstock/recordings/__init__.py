"""Recordings of calls: made, matched, replayed, exported and imported.

`recordings` decides what a call with replay headers gets and stores recordings. `files` turns a recording into a
document that a repository can hold, and back.
"""
