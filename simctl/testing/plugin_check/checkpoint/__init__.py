"""`plugins check` of checkpoint plugins: real checkpoints, vacates, restarts, and the rules."""
