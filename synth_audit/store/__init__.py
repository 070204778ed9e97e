"""What lasts: workspaces, evidence, records of stages."""
