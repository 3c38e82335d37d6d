"""Graphs, and matrices of them."""
