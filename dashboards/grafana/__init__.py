"""Grafana dashboards as code: ``make grafana`` writes the JSON that is committed.

Needs the extra ``dev``: who runs Grafana needs the JSON in deploy/grafana/dashboards, not this.
"""
