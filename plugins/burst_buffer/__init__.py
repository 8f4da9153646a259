"""The bundled burst buffer plugins."""
