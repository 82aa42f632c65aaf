"""The studies of the paper and further ones; each module needs only what it runs."""
