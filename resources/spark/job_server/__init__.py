"""One Spark session for several processes: a server that runs their jobs, and the resource that sends jobs to it."""
