"""`simctl plugins check FILE.lua`: a site's script is driven by many jobs, and its mistakes named.

- `source.py`: reads a script: its blocks (with `marked`, each tells the trace when it is reached),
  the fields, constants and texts that it uses, and what it compares fields with.
- `named.py`: the fields and constants that there are, by Slurm's version.
- `static.py`: mistakes that reading alone finds.
- `zoo.py`: jobs that differ, and more of them made of what the script compares fields with.
- `submissions.py`, `buffers.py`: run a job_submit.lua or a burst_buffer.lua in trial clusters.
- `rules.py`: every kind of mistake, with its cost and remedy.
- `check.py`: `check_script` puts these together; `report.py` prints.

May import what `plugin_check` may, and of it `mistakes` alone.
"""
