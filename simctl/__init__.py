"""Emulate Slurm's control plane in virtual time, with every plugin call where Slurm makes it."""

__version__ = "0.2.0"

DISTRIBUTION = "slurm-simctl"
"""The name under which simctl is installed; `simctl` is an unrelated project's on PyPI."""
