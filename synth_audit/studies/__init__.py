"""Many candidates or many leaks side by side."""
