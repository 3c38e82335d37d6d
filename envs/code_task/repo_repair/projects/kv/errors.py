"""What can go wrong."""


class StoreError(Exception):
    """Any of it."""


class NoTransaction(StoreError):
    """There is none to commit or to roll back."""


class WrongKind(StoreError):
    """A value that is of another kind."""
