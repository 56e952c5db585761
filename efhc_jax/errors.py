"""Errors that a user can fix. Each message names the field and says what to try."""


class EfhcError(Exception):
    """Base of every error that a user can fix; the command line prints it and exits with code 2."""


class ExperimentError(EfhcError):
    """A setting is out of range, of the wrong type, or does not fit the others."""


class DataError(EfhcError):
    """A dataset is missing, damaged, or does not fit the experiment."""
