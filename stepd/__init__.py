"""slurmstepd: one step on one node, from the fork by slurmd to the report of its end."""
