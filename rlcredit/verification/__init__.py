"""Judge whether an answer is right or wrong, or leave it unjudged, in processes that can do nothing else.

``verifiers.py`` and ``scorers.py`` judge, after ``answers.py`` has found the final answer, ``values.py`` has read it
and ``plain.py`` has refused what is no mathematics; ``faults.py`` says who is at fault for what is raised. ``own.py``
judges by a function of the user's, ``named.py`` imports it and ``trial.py`` tries it. ``jury.py`` shares a batch among
workers, ``cases.py`` its time; ``workers.py`` and ``serving.py`` are the two ends of one, ``sandbox.py`` and
``seccomp.py`` lock it. ``rewards.py`` turns verdicts into rewards.
"""
