"""A bank's file: connection, schema, transactions."""
