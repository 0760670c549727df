"""Measuring: quality against ground truth."""
