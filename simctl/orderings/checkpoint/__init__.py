"""Rules about checkpoint: requests, what tasks get, and records."""
