"""`plugins check` of burst buffer plugins: their directive, the lives of jobs with it, the rules."""
