"""Points to finite vectors whose inner products are a kernel, exactly or nearly."""
