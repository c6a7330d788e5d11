"""Vectors: who computes them, where they are kept."""
