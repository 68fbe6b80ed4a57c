#!/bin/bash
# Python for our jobs on the machines of an EMR cluster: a bootstrap action (docs/aws.md says how it gets there).
#
# Here: Python 3.11 and what requirements.lock names, at /opt/cdc-lake, where `emr.cluster.python` looks for it.
# Not here: the jobs' own code and jars, which come with each job. Run by EMR as its user hadoop; the argument is the
# lock's URI (s3://…/requirements.lock), from infra/aws/stacks/spark.py.
set -euo pipefail

lock=${1:?the URI of requirements.lock is missing}
folder=/opt/cdc-lake
copy=$(mktemp --directory)
trap 'rm -rf "$copy"' EXIT

aws s3 cp "$lock" "$copy/requirements.lock"
sudo dnf install --assumeyes python3.11 python3.11-pip
sudo python3.11 -m venv "$folder"
sudo "$folder/bin/pip" install --no-cache-dir --require-hashes -r "$copy/requirements.lock"
