"""Classes whose views may depend on each other."""
