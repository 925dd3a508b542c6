"""Statistics on plain numbers and arrays; imports numpy and scipy and nothing of training."""
