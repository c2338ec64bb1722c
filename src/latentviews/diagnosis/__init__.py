"""What a fit is worth, and which columns belong into one view."""
