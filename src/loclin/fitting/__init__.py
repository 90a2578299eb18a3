"""The road from data to a fitted model."""
