"""The daemon of Python workers takes PySpark from where it is installed, whatever Spark puts before that."""

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
LOOK = """
import json, sys
from cdc_lake.jobs import worker_daemon
import addition, py4j, pyspark
looked_into = [each for each in sys.path_importer_cache if each.endswith(".zip")]
print(json.dumps([pyspark.__file__, py4j.__file__, addition.__file__, looked_into]))
"""


def test_copies_in_zip_files_are_passed_over_and_other_zip_files_are_not(tmp_path: Path) -> None:
    linked = tmp_path / "linked"  # as from an environment that is reached by a symbolic link
    linked.symlink_to(COPIES)
    copies = [str(each / zipped.name) for each in (COPIES, linked) for zipped in sorted(COPIES.glob("*.zip"))]
    assert len(copies) == 4, "PySpark brings no copies any more, and worker_daemon.py need not pass them over"
    own = str(tmp_path / "own.zip")
    with zipfile.ZipFile(own, "w") as made:
        made.writestr("addition.py", "")  # as SparkContext.addPyFile has it
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((*copies, own, str(ROOT)))}
    done = subprocess.run((sys.executable, "-c", LOOK), env=environment, capture_output=True, text=True, check=True)
    spark, py4j, addition, looked_into = json.loads(done.stdout)
    assert Path(spark) == COPIES.parents[1] / "__init__.py"
    assert Path(py4j).is_file()
    assert addition == f"{own}/addition.py"
    assert [each for each in looked_into if not each.startswith(sys.base_prefix)] == [own]
