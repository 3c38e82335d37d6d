"""Reports of CSV files."""
