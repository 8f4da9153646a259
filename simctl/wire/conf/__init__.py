"""slurm.conf: the keys that are built and the rest, its lines, and values of its records.

For readers of a cluster's configuration; it imports other words of Slurm's, and no more.
"""
