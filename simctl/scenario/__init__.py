"""Scenarios: what a file may say, read into frozen values, and whether its expectations held."""
