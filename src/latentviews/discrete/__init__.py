"""Hidden classes behind categories: latent classes, raters, topics."""
