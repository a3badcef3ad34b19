"""Levels of a river from gauges along it: parsed, paired with the air pressure, calibrated, smoothed and summed up."""
