"""The session of `simctl repl` in a browser: `simctl view --live`.

`command` starts two processes: a server for this machine alone, and the session as its child, which
forks as sessions do. The server holds what has been told so far, for a page that is opened later.
"""
