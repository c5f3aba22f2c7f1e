"""Programs compiled with `aot_eager` against the same programs run eagerly."""
