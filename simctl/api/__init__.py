"""libslurm's side: what code that Slurm loads can ask of the process, the host and the cluster."""
