"""The audit of a whole memory: pure rules that look for what a user may want to clean up."""
