"""Token level: advantages reshaped inside a completion."""
