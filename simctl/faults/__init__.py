"""What goes wrong on purpose: `FaultInjector` carries out the faults of a scenario.

It knows the daemons there are (`daemons`), the backup controller included, and no run as a whole:
`world` makes it, and the timeline calls it.
"""
