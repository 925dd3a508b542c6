"""Episodes: an environment is acted on in turns, and answers each of them."""
