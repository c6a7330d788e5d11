"""What is written to a bank, changed in it and removed from it."""
