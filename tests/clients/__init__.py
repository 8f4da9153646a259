"""Programs for test_serve_clients.py: each uses one client of Slurm, as its users do."""
