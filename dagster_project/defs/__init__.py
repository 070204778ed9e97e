"""One folder for each audited table."""
