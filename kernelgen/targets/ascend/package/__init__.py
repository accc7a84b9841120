"""The files of a kernel for an owner of a card, and the script that runs them there.

Reading order: launch_on_card, kernel_files.
"""
