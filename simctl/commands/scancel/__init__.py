"""scancel: which jobs and steps are meant, and how they are ended or signalled."""
