"""The remote service over HTTP."""
