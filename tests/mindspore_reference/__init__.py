"""Against what the real MindSpore did: ``python -m tests.mindspore_reference DIR [--json OUT]``.

A difference that is meant is found by a rule on the record and told with its reason; there is no list of files.

Reading order: ``checks`` (what is checked, and what comes out), ``literals`` (how a record writes operands), ``rebuild`` (the
net of a record as a graph), ``settings`` (its options), ``blocks`` (which operators share a kernel, there and here), ``nets``
(the checks of a net), ``flags`` (the checks of flags), ``__main__`` (the command).
"""
