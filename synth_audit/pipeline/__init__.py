"""The stages in a row, and what guards them."""
