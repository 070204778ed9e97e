"""Views: one file for each family of ways to recognise a person."""
