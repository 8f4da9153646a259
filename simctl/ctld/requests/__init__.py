"""Requests of clients, a handler each: checks first, then the change, then the answer.

Offers the handlers to the main loop. Who may ask is `simctl.wire.rights`, which the loop enforces.
"""
