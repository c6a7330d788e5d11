"""How fast the local engine is, beside the real one: ``python -m benchmarks``."""
