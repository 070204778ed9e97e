"""Arrays from tables: cells, codes, ranks, coordinates, texts, and the column kinds."""
