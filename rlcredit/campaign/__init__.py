"""Conditions x seeds, declared before the first run and finished whatever interrupts them.

From declaration to verdict:

- ``declaration``, ``validation``: what a campaign file says, and what is refused.
- ``run_spec``, ``resolution``: its runs, and the configuration of each as the real parser resolves it.
- ``plan``, ``measure``: what it costs and what it can show; seconds per step from short runs.
- ``start``, ``scheduler``, ``slots``, ``launchers``: runs in slots of this machine or of a cluster.
- ``process``, ``child``: a run as a process, which ends with the campaign that started it.
- ``ledger``, ``recorded``: what was declared and done, on disk, checked where it is read.
- ``runs``, ``results``, ``differences``: what a run has left, and declared against executed.
- ``table``, ``parent``, ``metric``: what people see, here and in MLflow; what a number measures.
"""
