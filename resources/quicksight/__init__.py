"""Amazon QuickSight: the Dagster resource, the templates of what it creates, and ingestions.

quicksight = QuickSight(region="eu-central-1", account_id="123456789012", principal="group/analysts")
data_set = quicksight.data_set(templates, quicksight.data_source().arn)
quicksight.dashboard(templates, data_set.arn)
"""
