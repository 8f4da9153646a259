"""A site's own files beside a scenario: slurm.conf and burst_buffer.conf, put together with it."""
