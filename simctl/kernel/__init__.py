"""The world the daemons live in: virtual time, channels, processes, the trace; no Slurm."""
