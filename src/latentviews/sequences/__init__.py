"""Hidden states behind sequences, and forecasts."""
