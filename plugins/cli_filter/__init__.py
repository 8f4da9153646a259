"""The bundled cli_filter plugin: cli_filter/lua runs a site's cli_filter.lua in each command.

May import what a plugin's author may, and `simctl.plugins.lua`.
"""
