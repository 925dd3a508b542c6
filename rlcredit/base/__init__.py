"""Files, exit statuses, messages and the style of pictures; imports nothing else of rlcredit."""
