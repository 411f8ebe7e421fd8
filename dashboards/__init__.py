"""Web pages over the service, Grafana dashboards and alert rules."""
