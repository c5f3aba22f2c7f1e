"""Every Python-level function that runs without Python, held against eager."""
