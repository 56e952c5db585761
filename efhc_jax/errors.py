"""Errors that a user can fix. Each message names the field and says what to try."""


class EfhcError(Exception):
    """Base of every error that a user can fix; the command line prints it and exits with code 2."""


class ExperimentError(EfhcError, ValueError):
    """A setting is out of range, of the wrong type, or does not fit the others."""


class DataError(EfhcError):
    """A dataset is missing, damaged, or does not fit the experiment."""


def first_line(error: BaseException, default: str | None = None) -> str:
    r"""First line of an error message; if it is empty, `default` or the name of the error's type.

    Example:
        >>> first_line(ValueError("no such key\nin the file")), first_line(KeyError())
        ('no such key', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    if lines:
        return lines[0]
    return type(error).__name__ if default is None else default
