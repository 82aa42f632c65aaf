"""Proper scores, one file each."""
