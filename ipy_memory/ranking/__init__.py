"""The ranking `best`: the words of a bank, one index over them, and a score that can be explained."""

RANKINGS = ("agent", "best")
"""The agent's own ranking, which every tool uses, and the one that only a user can ask for."""
