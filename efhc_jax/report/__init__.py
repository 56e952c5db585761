"""One self-contained page about a run, a sweep or Figure 1, which opens from disk.

studies.py   a result file as plain values: its setting, figures and curves
runs.py      one run inside it: who broadcast, which links were used, the audit
auditor.py   the theorem's assumptions on the runs of a file
packing.py   many values in few characters
again.py     the command that runs it again
page.py      the values and the files beside it (HTML, CSS, JavaScript) as one page
"""
