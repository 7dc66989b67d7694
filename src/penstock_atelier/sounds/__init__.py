"""Renders effects and music from the words of a prompt, by rules.

Start reading with `render`; `effects` has the words that make noises, `composition` those that make music.
"""
