"""Networks that learn to draw rows, and what all of them share, on arrays alone. Torch is loaded here."""
