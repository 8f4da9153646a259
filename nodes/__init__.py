"""slurmd: one daemon a compute node, from its registration to its shutdown."""
