"""Mutations of the lifecycle code, and which of them the test suite notices.

``make mutants``, or ``python -m tests.mutants --help``; CONTRIBUTING.md says how to read what it
reports.
"""
