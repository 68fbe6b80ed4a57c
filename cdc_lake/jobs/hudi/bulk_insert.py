"""Create a Hudi table from Spark's rows, without converting each of them to an Avro record.

Hudi's data source can write the rows of a bulk insert like that too, but it commits them without the hook that checks
the lease. These are its steps, with the hook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from cdc_lake.jobs.hudi.commit_hook import CommitHook


def bulk_insert(rows: DataFrame, options: Mapping[str, str], hook: CommitHook) -> None:
    """Create a table, and write its first rows in one commit: one file for each Spark partition and table partition.

    `options` are those of HudiTable.write(). An empty table of an earlier attempt keeps its properties. Raises
    RuntimeError if Hudi does not commit, and Py4JJavaError if it fails, also for properties of another table layout.
    """
    spark = rows.sparkSession
    context = spark.sparkContext
    jvm: Any = context._jvm
    hudi = jvm.org.apache.hudi
    parameters = hudi.HoodieWriterUtils.parametersWithWriteDefaults(jvm.PythonUtils.toScalaMap(options))
    settings = jvm.scala.collection.JavaConverters.mapAsJavaMap(parameters)
    name, uri = options["hoodie.table.name"], options["path"]
    conf = context._jsc.hadoopConfiguration()
    storage = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(conf)
    properties = jvm.org.apache.hadoop.fs.Path(f"{uri}/.hoodie/hoodie.properties")
    if properties.getFileSystem(conf).exists(properties):
        found = hudi.common.table.HoodieTableMetaClient.builder().setConf(storage).setBasePath(uri).build()
        hudi.HoodieWriterUtils.validateTableConfig(spark._jsparkSession, parameters, found.getTableConfig())
    else:
        _builder(hudi, settings).initTable(storage, uri)
    schema = hudi.HoodieSchemaConversionUtils.convertStructTypeToHoodieSchema(
        rows._jdf.schema(), f"{name}_record", f"hoodie.{name}"
    )
    client = hudi.DataSourceUtils.createHoodieClient(context._jsc, schema.toString(), uri, name, settings)
    try:
        config = client.getConfig()
        operation = hudi.common.model.WriteOperationType.BULK_INSERT
        action = hudi.common.util.CommitUtils.getCommitActionType(operation, config.getTableType())
        instant = client.startCommit(action)
        executor = hudi.commit.DatasetBulkInsertCommitActionExecutor(config, client, instant)
        written = executor.execute(rows._jdf, bool(options["hoodie.datasource.write.partitionpath.field"]))
        committed = client.commit(
            instant,
            written.getWriteStatuses(),
            hudi.common.util.Option.of(hudi.DataSourceUtils.getExtraMetadata(settings)),
            action,
            written.getPartitionToReplaceFileIds(),
            hudi.common.util.Option.of(hook),
        )
        if not committed:
            raise RuntimeError(f"Cannot create {uri}: Hudi did not commit {instant}. Run the job again.")
    finally:
        client.close()


def _builder(hudi: Any, options: Any) -> Any:  # noqa: ANN401 - py4j has no types
    """Return the builder of a new table with the properties of the data source, without a bootstrap index."""
    return (
        hudi.common.table.HoodieTableMetaClient.newTableBuilder()
        .setTableType(options["hoodie.datasource.write.table.type"])
        .setTableVersion(int(options["hoodie.write.table.version"]))
        .setTableFormat("native")
        .setTableName(options["hoodie.table.name"])
        .setRecordKeyFields(options["hoodie.datasource.write.recordkey.field"])
        .setOrderingFields(options["hoodie.datasource.write.precombine.field"])
        .setPayloadClassName(options["hoodie.datasource.write.payload.class"])
        .setRecordMergeMode(hudi.common.config.RecordMergeMode.valueOf(options["hoodie.record.merge.mode"]))
        .setPartitionFields(options["hoodie.datasource.write.partitionpath.field"])
        .setKeyGeneratorClassProp(options["hoodie.datasource.write.keygenerator.class"])
        .setHiveStylePartitioningEnable(options["hoodie.datasource.write.hive_style_partitioning"] == "true")
        .setUrlEncodePartitioning(options["hoodie.datasource.write.partitionpath.urlencode"] == "true")
        .setPartitionValueExtractorClass(options["hoodie.datasource.hive_sync.partition_extractor_class"])
        .setCommitTimezone(hudi.common.model.HoodieTimelineTimeZone.valueOf(options["hoodie.table.timeline.timezone"]))
        .setBaseFileFormat("PARQUET")
        .setArchiveLogFolder("history")
        .setPopulateMetaFields(True)
        .setPartitionMetafileUseBaseFormat(False)
        .setShouldDropPartitionColumns(False)
        .setCDCEnabled(False)
        # The data source leaves it out, and Hudi looks for the index of a migrated table in each step of a batch.
        .setBootstrapIndexEnable(False)
    )
