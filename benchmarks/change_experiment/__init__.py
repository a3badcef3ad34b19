"""Change points of simulated histories: the series, who looks for changes in them, and the tables."""
