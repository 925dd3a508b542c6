"""Episode level: rewards to advantages, one number per completion."""
