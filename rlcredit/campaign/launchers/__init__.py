"""Launchers, which start the runs of a campaign on this machine or on the nodes of a cluster."""
