"""What `scontrol show` prints of each kind of thing."""
