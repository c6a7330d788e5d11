"""The program ``ipy-memory``: the commands from a terminal or a script, without IPython."""
