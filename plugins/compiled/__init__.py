"""Compiled plugins: a `.so`, or a `.c`, in real processes that stand for the simulated ones.

It offers to the registry of plugins the class that stands for a compiled plugin (`classes.find`).
An instance of it holds one real process, a host, which has opened the plugin; a simulated fork that
touches its memory is a real fork of the host. It may import simctl.plugin and below, and of the
plugins' room the guard and the lifecycle points.
"""

from typing import Final

SUFFIXES: Final = (".so", ".c")
