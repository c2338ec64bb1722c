"""Categories: latent classes, raters, topics."""
