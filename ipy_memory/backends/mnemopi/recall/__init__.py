"""From a query to scored hits."""
