"""Tests against a real Hindsight server; they fail, and never skip, where none can be run."""
