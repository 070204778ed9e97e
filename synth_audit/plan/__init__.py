"""The plan of one table: its keys, its file, its schema."""
