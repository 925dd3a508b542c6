"""Reports of campaigns: evidence, comparisons with their conclusions, and one page that shows them."""
