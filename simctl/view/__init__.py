"""Pictures of runs: pages for a browser, diagrams, and files that other viewers read.

For the command line, the tests and the REPL's session in a browser. It reads traces, results of
runs and databases, and changes nothing; what a page does in the browser lies in `assets/`.
"""
