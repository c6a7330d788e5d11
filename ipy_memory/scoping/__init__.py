"""Which banks a session writes and reads."""
