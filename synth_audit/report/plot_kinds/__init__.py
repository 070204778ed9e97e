"""The kinds of pictures that a series may have, one file each."""
