"""Independent components."""
