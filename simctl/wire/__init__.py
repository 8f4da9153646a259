"""Slurm's vocabulary: ids, errors, states, messages, host lists. No trio, no input or output."""
