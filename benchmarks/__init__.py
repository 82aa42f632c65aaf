"""Speed against the peers, always as a ratio measured in one run."""
