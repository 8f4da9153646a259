"""Rules about steps: launches, step daemons, their messages, and hand-overs."""
