"""The service at work: campaigns forward, experiments armed and disarmed, all of it on record."""
