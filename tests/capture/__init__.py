"""Small Python programs, compiled with `assay.compile` against the same programs run eagerly."""
