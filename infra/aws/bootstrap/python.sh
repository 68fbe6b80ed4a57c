#!/bin/bash
# Bootstrap action for EMR clusters: installs Python 3.11 and the packages of requirements.lock in /opt/cdc-lake, the
# default of `emr.cluster.python`. docs/aws.md describes the upload of this script.
#
# EMR runs it as user hadoop; the argument is the lock's URI (s3://…/requirements.lock), from infra/aws/stacks/spark.py.
# The jobs' own code and jars are submitted with each job.
set -euo pipefail

lock=${1:?the URI of requirements.lock is missing}
folder=/opt/cdc-lake
copy=$(mktemp --directory)
trap 'rm -rf "$copy"' EXIT

aws s3 cp "$lock" "$copy/requirements.lock"
sudo dnf install --assumeyes python3.11 python3.11-pip
sudo python3.11 -m venv "$folder"
sudo "$folder/bin/pip" install --no-cache-dir --require-hashes -r "$copy/requirements.lock"
