"""sinfo: which nodes, grouped into rows, in what order."""
