"""Planning: text to plan_mask, which tokens decide how to go on."""
