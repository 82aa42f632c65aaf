"""From losses to means with errors: influences, clusters, bootstrap, intervals and tests."""
