"""A store of keys and values, with transactions, expiry and a log."""
