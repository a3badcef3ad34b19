"""The optimize stage: one change at a time, kept only where it is proven and correct."""
