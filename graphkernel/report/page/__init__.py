"""A report as one page that needs nothing else: the graph before and after, its kernels, their times, reasons and sources.

Reading order: ``story`` (what became of what, and why), ``scopes`` (large graphs in pieces), ``layout`` (places for boxes),
``pictures`` (the graphs as drawings), ``report_page`` (words, tables and data of the page), ``shell`` (its frame, for other
pages as well). ``page.css`` is how it looks, ``page.js`` draws the graphs and answers clicks.
"""
