"""The wing of many crawls and many machines: jobs in Redis, shared crawls, Spark, the dashboard."""
