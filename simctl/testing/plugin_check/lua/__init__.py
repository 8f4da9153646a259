"""`simctl plugins check FILE.lua`: a site's script is driven by many jobs, and its mistakes named.

- `tokens.py`, `source.py`: read a script: its blocks (with `marked`, each tells the trace when it
  is reached), what of Slurm it uses, and what it compares fields with.
- `named.py`: the functions, fields, constants and options that there are, by Slurm's version.
- `static.py`: mistakes that reading alone finds; `lines.py`: lines of shell that it runs.
- `zoo.py`: jobs that differ, and more of them made of what the script compares fields with.
- `submissions.py`, `submit_check.py`: run and judge a job_submit.lua or a cli_filter.lua, job by
  job; `buffers.py`: a burst_buffer.lua, life by life; `given.py`: scenarios of its author's.
- `rules.py`, `found.py`: every kind of mistake, with its cost and remedy; those found, once each.
- `check.py`: `check_script` puts these together; `report.py` prints; `marks.py` reads traces.

May import what `plugin_check` may, and of it `mistakes` and `report` alone.
"""
