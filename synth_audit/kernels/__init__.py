"""Pure functions on arrays: encoding, neighbours, intervals. They know no plan, no plug-in, no file."""
