"""The contracts of plug-ins, and the registry that finds them."""
