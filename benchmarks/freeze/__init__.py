"""What comparisons gave at another commit, and what they give now: numbers, notes, verdicts and JSON."""
