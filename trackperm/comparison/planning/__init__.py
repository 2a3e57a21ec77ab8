"""Planning of a comparison: how many examples a difference or an equivalence takes."""
