"""Differential privacy: accounting, noise, guarantees."""
