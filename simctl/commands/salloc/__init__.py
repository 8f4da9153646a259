"""salloc: an allocation, and a command that runs in it."""
