"""Requests with total limits, and failures in words."""
