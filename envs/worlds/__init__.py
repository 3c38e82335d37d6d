"""The worlds that ship with the package, one folder each."""
