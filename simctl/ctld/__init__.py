"""slurmctld: the controller, one handler an RPC."""
