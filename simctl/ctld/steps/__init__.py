"""Steps: how slurmctld makes one, lets one wait, limits its time and ends it.

Offers these to `jobs`, `recovery` and `requests`. What ends with the last step is the job's.
"""
