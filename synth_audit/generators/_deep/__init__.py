"""Networks that learn to draw rows, and what the generators that use them share."""
