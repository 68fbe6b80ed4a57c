"""Polls, reconciliation and verify as jobs of EMR Serverless, which read the source's password from Secrets Manager."""

from __future__ import annotations

from cdc_lake_tests.aws_api.emr.job_resources import EmrResources
from cdc_lake_tests.integration.poll.conftest import NewPolled
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline, settled, wait_for_bound
from resources.spark.emr.session import EmrSession

TABLES = """\
    - { name: goods, key: [id], poll: { timestamp: changed } }
"""


def test_polls_run_on_emr(new_polled: NewPolled, emr: EmrResources) -> None:
    local = new_polled("remote", TABLES)
    local.execute("create table goods (id int primary key, v text, changed timestamptz not null default now())")
    local.execute("insert into goods (id, v) values (1, 'kept'), (2, 'gone')")
    session = EmrSession(emr.serverless())
    pipeline = PolledPipeline(local.loaded, local.engines, local.postgres, run_job=session.run)
    wait_for_bound(pipeline, "goods")
    assert pipeline.poll("goods").records == 2
    local.land_and_apply("goods")
    local.execute("delete from goods where id = 2")
    settled(local, "goods")
    assert pipeline.verify("goods").extra == 1
    done = pipeline.reconcile("goods").report
    assert done is not None
    assert (done.deletes, done.lake_keys, done.source_keys) == (1, 2, 1)
    assert pipeline.verify("goods").clean
    session.stop()
