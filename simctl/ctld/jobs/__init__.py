"""The life of a job: eligible, staged in, launched, suspended, ended, back in the queue or purged.

`eligible` puts a job where it belongs, `launch` starts it, `completion` ends it: each the one road.
Offers these to `scheduling`, `recovery` and `requests`; who must start when a job has left its
nodes is told by a moment (`controller.Moments`).
"""
