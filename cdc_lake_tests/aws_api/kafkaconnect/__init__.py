"""MSK Connect over one Connect worker, which runs all connectors.

As in AWS there is no REST interface, no task status and no offsets. What differs from AWS:

- The worker runs the plugins that it was started with; a connector whose class it lacks becomes FAILED. Plugins, worker
  configurations, capacity, role, network and logs are stored and not applied.
- An update is complete once the worker reports RUNNING, which may be the state before the update. If the connector or a
  task is FAILED, the update is rolled back. AWS does not document whether its health checks look at more.
"""
