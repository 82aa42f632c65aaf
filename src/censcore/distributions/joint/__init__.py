"""Joint distributions of several event times."""
