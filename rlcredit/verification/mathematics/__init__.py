"""Compare an answer with its reference as mathematics, in the notation that people use."""
