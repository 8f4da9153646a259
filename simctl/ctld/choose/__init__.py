"""Choices: which nodes a job takes, how a step is laid out, what a dependency has come to.

Offers pure functions to the rooms above. They are given tables and moments, and give answers: no
`await`, no message, no plugin call. They import `state` alone.
"""
