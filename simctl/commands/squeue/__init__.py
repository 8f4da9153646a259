"""squeue: which jobs and steps, in what order, in which rows."""
