"""How work is done: executor, seeds, salt, deadline, cache, progress."""
