"""Do two samples come from one distribution, and are two views independent."""
