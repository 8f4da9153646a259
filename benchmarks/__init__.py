"""What should be fast, measured; figures are compared within one run, for machines differ."""
