"""Hidden classes behind several views."""
