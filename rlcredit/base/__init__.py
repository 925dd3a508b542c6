"""Ground floor: files, exit statuses, messages and the style of pictures; imports nothing of rlcredit."""
