"""`plugins check` of burst buffer plugins: lives with a directive of their own, rules."""
