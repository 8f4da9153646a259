"""The bundled switch plugins."""
