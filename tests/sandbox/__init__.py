"""Tests of the sandbox, and a client of its servers."""
