"""Nodes seen from slurmctld: whether they answer, their switch state, what old jobs left there.

Offers functions on a node to `jobs` and `recovery`. What a lost node leads to is `recovery`'s.
"""
