"""Run Spark jobs in this process, in a server process of this machine, on an EMR cluster, or on EMR Serverless."""
