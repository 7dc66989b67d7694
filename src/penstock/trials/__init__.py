"""Trials: the same prompts with several models, run as one batch, compared blind, and decided with figures.

Start with `intake`, which makes a trial of prompts and models, and `results`, which says how each model did. `prompts`
reads prompts, `scores` is the arithmetic of votes.
"""
