"""Is an answer right, wrong, or could nobody tell? Answers are judged as data, where nothing can happen.

``verifiers.py`` and ``scorers.py`` judge, after ``answers.py`` has found the final answer and ``plain.py`` has refused
what is no mathematics. ``jury.py`` shares a batch among workers, within a budget; ``workers.py`` and ``serving.py`` are
the two ends of one, ``sandbox.py`` and ``seccomp.py`` lock it. ``rewards.py`` turns verdicts into rewards.
"""
