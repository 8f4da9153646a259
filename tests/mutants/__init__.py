"""Mutations of the lifecycle code, and which of them the test suite notices.

``python -m tests.mutants --help``, or ``make mutants``. docs/mutants.md says what is mutated.
"""
