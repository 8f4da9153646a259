"""What tests and readers of traces use."""
