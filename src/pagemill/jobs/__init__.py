"""Jobs that survive: a store of what was handed in, and workers that take it through the conversion."""
