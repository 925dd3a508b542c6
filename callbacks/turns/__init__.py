"""Turns: rewards to advantages, one number per turn, and which turns and tokens have them."""
