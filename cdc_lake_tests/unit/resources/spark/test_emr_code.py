"""The code that jobs on EMR run: the same bytes everywhere, all that is imported, and nothing that EMR has itself."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from cdc_lake.jobs.remote import job_call
from cdc_lake_tests.fakes.s3 import MemoryS3, served_s3
from resources.errors import ResourceError
from resources.spark.emr_code import EmrCode, archive
from resources.spark.emr_job_files import JobFiles

ROOT = Path(__file__).parents[4]


@pytest.fixture
def s3() -> Iterator[MemoryS3]:
    """The store."""
    with served_s3() as found:
        yield found


def files(s3: MemoryS3) -> JobFiles:
    """A folder of it."""
    return JobFiles(bucket="lake", endpoint_url=s3.url, access_key="key", secret_key="secret", attempts=1)


def package(folder: Path) -> Path:
    """A package in a folder."""
    (folder / "shop" / "__pycache__").mkdir(parents=True)
    (folder / "shop" / "__pycache__" / "a.pyc").write_bytes(os.urandom(8))
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "a.py").write_text("A = 1")
    (folder / "shop" / "a.properties").write_text("a 1")
    return folder


def test_the_same_files_are_the_same_bytes(tmp_path: Path) -> None:
    one = package(tmp_path / "one")
    two = Path(shutil.copytree(one, tmp_path / "two"))
    os.utime(two / "shop" / "a.py", (1, 10**9))
    (two / "shop" / "a.py").chmod(0o755)
    made = archive(one, ["shop"])
    assert made == archive(two, ["shop"])
    assert zipfile.ZipFile(BytesIO(made)).namelist() == ["shop/__init__.py", "shop/a.properties", "shop/a.py"]
    (two / "shop" / "a.py").write_text("A = 2")
    assert made != archive(two, ["shop"])
    with pytest.raises(ResourceError, match=r"nothing to pack in .*/none"):
        archive(one, ["none"])


def test_the_jobs_are_imported_from_the_archive_alone(tmp_path: Path) -> None:
    (tmp_path / "code.zip").write_bytes(archive(ROOT, job_call.PACKAGES))
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import cdc_lake.jobs.remote.main as main\n"
        "from cdc_lake.jobs.hudi import writer\n"
        "assert writer.properties(writer.OPTIONS.read_text())['hoodie.write.table.version'] == '6'\n"
        "own = [m.__file__ for n, m in sys.modules.items() if n.split('.')[0] in ('cdc_lake', 'resources', 'infra')]\n"
        "assert own and all(each.startswith(sys.argv[1]) for each in own), own\n"
        "assert 'dagster' not in sys.modules\n"
        "print(main.main.__name__, sorted(main.job_call.JOBS))\n"
    )
    command = [sys.executable, "-I", "-c", program, str(tmp_path / "code.zip")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("main ['land', 'purge'")


def test_objects_are_named_by_what_they_hold_and_put_once(s3: MemoryS3, tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("hudi-1.jar", "hadoop-aws-3.3.4.jar", "aws-java-sdk-s3-1.jar", "kafka-clients-3.jar"):
        (jars / name).write_bytes(name.encode())
    (tmp_path / "aws-msk-iam-auth-2.jar").write_bytes(b"iam")
    (tmp_path / "main.py").write_text("print()")
    one = EmrCode(
        root=str(package(tmp_path / "code")),
        packages=["shop"],
        entry=str(tmp_path / "main.py"),
        jars=str(jars),
        more_jars=[str(tmp_path / "aws-msk-iam-auth-2.jar")],
    )
    found = one.upload(files(s3))
    names = [uri.rpartition("/")[2] for uri in found.jars]
    assert names == ["hudi-1.jar", "kafka-clients-3.jar", "aws-msk-iam-auth-2.jar"]
    for uri in (found.entry, found.archive, *found.jars):
        key = uri.removeprefix("s3://")
        assert hashlib.sha256(s3.objects[key]).hexdigest().startswith(key.split("/")[-2])
    before = dict(s3.objects)
    assert one.upload(files(s3)) == found
    assert s3.objects == before
    (tmp_path / "main.py").write_text("print(2)")
    assert one.upload(files(s3)).entry != found.entry
    assert found.entry.removeprefix("s3://") in s3.objects


def test_without_jars_nothing_is_started(s3: MemoryS3, tmp_path: Path) -> None:
    code = package(tmp_path)
    one = EmrCode(root=str(code), packages=["shop"], entry=str(code / "shop" / "a.py"), jars=str(tmp_path / "none"))
    with pytest.raises(ResourceError, match="there are no jars for Spark in"):
        one.upload(files(s3))
