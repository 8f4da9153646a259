"""Slurm's commands: arguments in, messages to the controller, Slurm's text out."""
