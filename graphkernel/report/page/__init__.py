"""A report as one page that needs nothing else: the graph before and after, its kernels, their times, reasons and sources.

Reading order: counted, html, layout, scopes, shell, story, pictures, report_page.
"""
