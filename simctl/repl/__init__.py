"""A session: a person steps through a cluster, stops it anywhere, and goes back."""
