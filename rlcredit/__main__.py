"""``python -m rlcredit``."""

from rlcredit.cli import main

if __name__ == "__main__":
    main()
