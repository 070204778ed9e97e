"""The stages of an audit, from the split to the release, and the evidence they leave."""
