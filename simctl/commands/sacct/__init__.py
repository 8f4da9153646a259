"""sacct: what the accounting database has of jobs and steps."""
