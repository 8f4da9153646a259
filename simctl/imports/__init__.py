"""Scenarios made from a site's own files."""
