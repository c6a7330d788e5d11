"""ipywidgets panels over plain state objects."""
