"""The commands, declared once for every face: names, flags, arity, groups and help."""
