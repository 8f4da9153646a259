"""burst_buffer/generic: a site's own scripts, polled for what they hold."""
