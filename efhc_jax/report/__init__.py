"""Self-contained HTML page about runs, sweeps or Figure 1.

studies.py   a result file as plain values: its settings, headline figures and curves
runs.py      one run of it: broadcasts, links in use, the audit
auditor.py   the theorem's assumptions on the runs of a file
packing.py   compact encoding of values
again.py     the command that repeats it
page.py      the page from the values and the HTML, CSS and JavaScript files
"""
