"""The local engine: one SQLite file is one bank."""
