"""One self-contained page about a run, a sweep or Figure 1, which opens from disk.

studies.py   a result file as plain values: its setting, figures and curves
runs.py      one run inside it: who broadcast, which links were used, the audit
auditor.py   the theorem's assumptions on the runs of a file
thinning.py  the part of a large network that is drawn
claims.py    the verdicts that `efhc figure1` wrote next to its sweeps
packing.py   many values in few characters
escaping.py  text and numbers of files as strict JSON, without control characters
again.py     the command that runs it again
page.py      the values and the files beside it (HTML, CSS, JavaScript) as one page
"""
