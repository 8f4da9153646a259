"""sbatch, and what all that submit have in common: from options to the description of a job.

For salloc and srun as well.
"""
