"""Pages and Grafana dashboards over the service. Nothing is here yet but the room's name."""
