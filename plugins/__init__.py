"""Lifecycle points, the plugins that stand there, and the calls between them and the daemons."""
