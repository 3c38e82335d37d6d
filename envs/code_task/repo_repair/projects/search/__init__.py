"""Finding texts by their words."""
