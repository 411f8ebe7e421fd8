"""The place *Work*: campaigns, experiments, calendar, maintenance and replays."""
