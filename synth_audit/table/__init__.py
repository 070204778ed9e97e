"""What a table is: columns, kinds, people, rules; read, compared, coarsened and written."""
