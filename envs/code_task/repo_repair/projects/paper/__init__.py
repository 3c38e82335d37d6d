"""Plain text and HTML from a small markup."""
