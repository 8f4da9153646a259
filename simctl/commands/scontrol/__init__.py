"""scontrol: its orders, each a module, and what it shows."""
