"""Scheduler passes: first come first served, backfill, preemption, and reservations.

Offers the passes to the main loop. It starts jobs by `jobs.launch` and ends none itself.
"""
