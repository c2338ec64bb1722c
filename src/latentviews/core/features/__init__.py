"""Points to finite vectors φ(x) whose inner products are a kernel, exactly or nearly.

Maps are scikit-learn transformers, and any other transformer may stand in their place; `base` says what they offer.
"""
