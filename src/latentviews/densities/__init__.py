"""Distributions of a view in every class, from rows and their posteriors."""
