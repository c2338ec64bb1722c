"""Functions learnt from a stream, of which neither rows nor features are kept."""
