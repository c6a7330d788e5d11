"""The two places a memory can live in, behind one base class."""
