"""Who starts the runs of a campaign, and where: this machine, or the nodes of a cluster."""
