"""slurmctld's state files: which fields of each record are kept, when, and how they are read back.

Offers `StateSave` to the controller. It imports `port` and `state`.
"""
