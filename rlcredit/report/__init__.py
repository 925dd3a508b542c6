"""What a campaign found: evidence, comparisons with a verdict each, and one page that shows them."""
