"""The daemon of Python workers imports the installed PySpark, not the copies that Spark puts before it on sys.path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark

ROOT = Path(__file__).parents[3]
COPIES = Path(pyspark.__file__).parent / "python" / "lib"
PRINT_IMPORTS = """
import json, sys
from cdc_lake.jobs import worker_daemon
import addition, py4j, pyspark
looked_into = [each for each in sys.path_importer_cache if each.endswith(".zip")]
print(json.dumps([pyspark.__file__, py4j.__file__, addition.__file__, looked_into]))
"""


def test_only_zip_files_with_copies_of_pyspark_are_skipped(tmp_path: Path) -> None:
    linked = tmp_path / "linked"  # like an environment that is reached by a symbolic link
    linked.symlink_to(COPIES)
    copies = [str(each / zipped.name) for each in (COPIES, linked) for zipped in sorted(COPIES.glob("*.zip"))]
    assert len(copies) == 4, "PySpark contains no copies any more: worker_daemon.py need not skip them"
    added = str(tmp_path / "own.zip")
    with zipfile.ZipFile(added, "w") as archive:
        archive.writestr("addition.py", "")  # like SparkContext.addPyFile
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((*copies, added, str(ROOT)))}
    done = subprocess.run(
        (sys.executable, "-c", PRINT_IMPORTS), env=environment, capture_output=True, text=True, check=True
    )
    spark, py4j, addition, looked_into = json.loads(done.stdout)
    assert Path(spark) == COPIES.parents[1] / "__init__.py"
    assert Path(py4j).is_file()
    assert addition == f"{added}/addition.py"
    assert [each for each in looked_into if not each.startswith(sys.base_prefix)] == [added]
