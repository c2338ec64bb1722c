"""The one path that every model takes: kernel → features → moments → whitening → tensor → embedding."""
