"""What the agent never shows: reasons, listings, comparisons."""
