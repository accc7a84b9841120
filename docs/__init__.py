"""Documentation: the pages, and ``generate``, which writes those that list what the code declares.

``markdown`` makes pages and tables, ``measured`` the pages of committed runs at the graph level,
``compile_times`` the page of compile times, ``v100`` the table beside times that were published.
"""
