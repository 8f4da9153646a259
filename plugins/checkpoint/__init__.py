"""The bundled checkpoint plugins."""
