"""Values that came from code that nobody trusts, in words."""

__all__ = ["quoted"]


def quoted(value: object, most: int = 300) -> str:
    """A plain value as Python writes it, cut off after so many characters. One with a number too long to be written is only described."""
    try:
        return repr(value)[:most]
    except ValueError:
        return f"<{type(value).__name__} with a very long number>"
