"""Reports of the gate that CI runs on a candidate."""
