"""The report card: what one credit operator is, does, costs and teaches, beside a baseline and all that is shipped."""
