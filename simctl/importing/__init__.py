"""`simctl import`: scenarios from what a site has, a module for each kind of file."""
