"""Comparing results and programs, against what stock PyTorch says."""
