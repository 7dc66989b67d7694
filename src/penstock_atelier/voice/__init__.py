"""The built-in voice: English text to speech by rules and a formant synthesizer, without any recorded sound.

`words` writes numbers and signs out, `pronunciation` finds the phonemes of a word in the `lexicon` or by the rules of
`spelling`, `prosody` gives them lengths and a melody, and `synthesis` makes samples of them. `speak` is the task of a
child process that does all this clause by clause.
"""
