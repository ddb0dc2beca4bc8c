"""Readers of the files that diagnostics write."""
