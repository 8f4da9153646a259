"""Rules about burst_buffer: what jobs ask for, passes, stages, scripts and ends."""
