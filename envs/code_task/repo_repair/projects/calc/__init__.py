"""Arithmetic from text: tokens, a tree, a value."""
