"""Expectations held against a run: jobs, orders, and what forces one event before another."""
