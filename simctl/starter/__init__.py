"""`simctl new`: folders in which an author begins, with everything that a plugin needs."""
