"""What `plugins check` puts switch plugins through, and holds them to."""
