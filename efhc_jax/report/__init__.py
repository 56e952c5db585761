"""Self-contained HTML page about runs, sweeps or Figure 1.

studies.py   a result file as plain values: its settings, headline figures and curves
runs.py      one run of a file: broadcasts, links in use, the audit
auditor.py   the theorem's assumptions on the runs of a file
thinning.py  the part of a large network that is drawn
claims.py    the verdicts that `efhc figure1` wrote next to its sweeps
packing.py   compact encoding of values
escaping.py  text and numbers from files as strict JSON, without control characters
command.py   the command that repeats a result
page.py      the page from the values and the HTML, CSS and JavaScript files
"""
