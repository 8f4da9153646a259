"""burst_buffer/lua: a site's burst_buffer.lua stages data for jobs, as in Slurm 21.08 to 25.05.

Offers `BurstBufferLua`. `plugin` has the functions of the guide, `stages` what takes time,
`calls` runs a function of the script, `directives` reads what jobs ask for, `books` keeps pools and
buffers.
"""
