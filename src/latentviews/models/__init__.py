"""One file an estimator."""
