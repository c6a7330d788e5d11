"""Settings: what there is, where values come from, who may set them."""
