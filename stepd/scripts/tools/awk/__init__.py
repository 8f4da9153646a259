"""awk: patterns and actions on the fields of lines.

Simulated: BEGIN, END, patterns and ranges; print and printf, also into nothing but the output; if,
while, do, for, break, continue, next, exit, delete; arrays; all operators; getline and functions of
one's own are refused, as are files and commands that a script would read or write.
"""
