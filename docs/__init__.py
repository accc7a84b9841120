"""Documentation: the pages, and ``generate``, which writes those that list what the code declares."""
