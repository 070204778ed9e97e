"""Views: one file for each family of ways to recognise a person; the contract is ``../view.py``."""
