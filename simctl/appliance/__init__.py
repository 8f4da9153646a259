"""The simulated appliance behind burst buffer plugins."""
