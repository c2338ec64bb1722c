"""The joint density of many columns."""
