"""What is told of a run: summary, timeline, live line, database; and the lists of plugins.

For the command line and the REPL. It reads a `World`, its results and its events, and changes
nothing.
"""
