"""The ranking `best`: the words of a bank, one index over them, and a score that can be explained."""
