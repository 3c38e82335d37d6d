"""Projects of several files with a fault somewhere in them."""
