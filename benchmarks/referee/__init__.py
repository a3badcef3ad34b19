"""Patches that a referee must judge: tricks, real gains of public packages, and others that gain nothing."""
