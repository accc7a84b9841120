"""Documentation: the pages, and ``generate``, which writes those that list what the code declares.

``markdown`` makes pages and tables, ``measured`` the pages of committed runs at the graph level, ``exported`` their part on
exported models, ``compile_times`` the page of compile times, ``accuracy`` that of errors, ``differentiation`` that of
gradients, ``ascend_networks`` that of networks on Ascend, ``device`` the table of the benchmark on a CUDA device, ``v100``
that beside times that were published, ``rooms`` the graph of rooms, ``lines`` where the lines are from.
"""
