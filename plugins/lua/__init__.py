"""Lua scripts of sites, run in virtual time with no way to the real machine.

Offers `LuaState`, in which a script is loaded and its functions are called; `Machine`, what a
script reaches of the simulated machine; and `slurm_table`, what Slurm of a version puts into the
global `slurm`. For the plugins that hand over to a script. May import what a plugin's author may.
Needs the extra ``[lua]``.
"""
