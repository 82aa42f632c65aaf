"""How far the censoring distribution can be trusted, and what if it cannot."""
