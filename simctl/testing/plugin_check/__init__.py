"""`simctl plugins check`: drive every function of a plugin in trial clusters, and judge it."""
