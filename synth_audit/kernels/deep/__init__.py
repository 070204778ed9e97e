"""Networks that learn to draw rows: what all of them share, on arrays alone. Torch is loaded here and only here."""
