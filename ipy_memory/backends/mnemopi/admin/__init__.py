"""Checks, repairs and counts."""
