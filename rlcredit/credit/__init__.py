"""Credit: the rollout with its ledger, the operator that edits it, and the checks of a stack of operators."""
