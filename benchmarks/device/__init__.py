"""Running the device benchmark on a machine without a package index: ``collect.py`` here, ``run.sh`` there."""
