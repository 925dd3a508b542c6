"""What people write, checked before anything is made of it: refused with one message that names the place.

``checks.py`` looks at a whole command line. ``strict_yaml.py`` reads files, ``class_paths.py`` and ``source.py`` find
out what a class path names without running it, ``names.py``, ``passwords.py`` and ``limits.py`` look at single values,
``targets.py`` and ``feasible.py`` at what they come to, and ``loggers.py`` makes loggers once nothing is refused.
"""
