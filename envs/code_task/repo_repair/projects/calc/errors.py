"""What can be wrong with an expression."""


class CalcError(Exception):
    """Any of it."""


class BadToken(CalcError):
    """A character that means nothing."""


class BadSyntax(CalcError):
    """Tokens in an order that means nothing."""


class BadName(CalcError):
    """A name or a function that nobody has defined."""
