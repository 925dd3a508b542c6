"""What watches a run while it trains: signals, its other processes, missing rewards, the progress display."""
