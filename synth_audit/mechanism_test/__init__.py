"""Does a claimed ε hold? Runs a mechanism many times on neighbouring tables and tells them apart."""
