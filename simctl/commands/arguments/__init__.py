"""What people type: options and their values, each command's help, and variables for options.

For the commands; it asks slurmctld nothing.
"""
