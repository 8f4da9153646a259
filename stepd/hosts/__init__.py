"""The processes that scripts run in: what a shell or a tool asks its `ShellHost`, really done.

`script_host.ScriptHost` runs one script, tool or subshell in one simulated process. The job
manager, tasks, srun, salloc and what runs lines of shell start scripts with it, and pass signals on
to it. Its parts build on each other: `base` waits for children, `signals` takes and sends signals,
`files` reads and writes, `starting` forks, `script_host` takes and restores images. `child` is what
all know of a child.

Imported here: the kernel, `simctl.site`, and of stepd the shell, its images and the programs of a
scenario.
"""
