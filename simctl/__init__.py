"""Emulate Slurm's control plane in virtual time, with every plugin call where Slurm makes it."""

__version__ = "0.1.0"
