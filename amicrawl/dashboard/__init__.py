"""The dashboard: a web page and an HTTP API to see and steer jobs."""
