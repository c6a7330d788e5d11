"""See, search and mend an AI agent's long-term memory from IPython and Jupyter."""

__version__ = "0.1.0"
