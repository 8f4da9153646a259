"""How a command talks with slurmctld: one question, many, or while it waits for something else.

For the commands; it prints nothing but errors.
"""
