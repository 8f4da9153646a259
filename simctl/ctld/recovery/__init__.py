"""What is lost and comes back: a restart of slurmctld, nodes that fall silent, messages.

Offers the handlers of registrations, pings and unanswered messages to the main loop.
"""
