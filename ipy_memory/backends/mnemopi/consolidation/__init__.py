"""Summaries of old memories, and their decay."""
