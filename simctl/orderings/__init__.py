"""The built-in orderings: rules that every run keeps, checked on every run of every scenario.

`rules` says what a rule is, `observed` reads a trace for them, `checking` holds a run against all
that are declared; the other modules declare them, each about one part of the cluster.
"""
