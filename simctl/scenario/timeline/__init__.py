"""What happens to the cluster: command lines that are typed, faults, and whom they strike."""
