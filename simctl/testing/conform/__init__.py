"""`simctl trace conform`: a run of model modern held against a recording of real Slurm 18.08."""
