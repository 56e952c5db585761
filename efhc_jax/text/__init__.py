"""Words: names in other spellings, docstrings of fields, text for terminals and figures."""
