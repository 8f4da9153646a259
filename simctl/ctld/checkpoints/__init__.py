"""Checkpoints of jobs and steps: the operation itself, its files, and the times of periodic ones.

Offers `operate` and the watch of intervals to `steps`, `jobs`, `scheduling` and `requests`.
"""
