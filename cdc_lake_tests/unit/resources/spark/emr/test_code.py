"""Code archives for EMR: reproducible bytes, complete, and without jars that EMR provides."""

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
from cdc_lake_tests.fakes.aws.s3 import MemoryS3, served_s3
from resources.errors import ResourceError
from resources.spark.emr.code import EmrCode, archive
from resources.spark.emr.job_files import JobFiles

ROOT = Path(__file__).parents[5]


@pytest.fixture
def s3() -> Iterator[MemoryS3]:
    """A fake S3."""
    with served_s3() as found:
        yield found


def files(s3: MemoryS3) -> JobFiles:
    """Return the resource for files in the fake S3."""
    return JobFiles(bucket="lake", endpoint_url=s3.url, access_key="key", secret_key="secret", attempts=1)


def package(folder: Path) -> Path:
    """Create a package in a folder."""
    (folder / "shop" / "__pycache__").mkdir(parents=True)
    (folder / "shop" / "__pycache__" / "a.pyc").write_bytes(os.urandom(8))
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "a.py").write_text("A = 1")
    (folder / "shop" / "a.properties").write_text("a 1")
    return folder


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    original = package(tmp_path / "one")
    copy = Path(shutil.copytree(original, tmp_path / "two"))
    os.utime(copy / "shop" / "a.py", (1, 10**9))
    (copy / "shop" / "a.py").chmod(0o755)
    first_archive = archive(original, ["shop"])
    assert first_archive == archive(copy, ["shop"])
    assert zipfile.ZipFile(BytesIO(first_archive)).namelist() == ["shop/__init__.py", "shop/a.properties", "shop/a.py"]
    (copy / "shop" / "a.py").write_text("A = 2")
    assert first_archive != archive(copy, ["shop"])
    with pytest.raises(ResourceError, match=r"/none contains no files"):
        archive(original, ["none"])


def test_jobs_can_be_imported_from_the_archive_alone(tmp_path: Path) -> None:
    (tmp_path / "code.zip").write_bytes(archive(ROOT, job_call.PACKAGES))
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import cdc_lake.jobs.remote.main as main\n"
        "from cdc_lake.jobs.hudi import table_options as hudi\n"
        "assert hudi.properties(hudi.OPTIONS.read_text())['hoodie.write.table.version'] == '6'\n"
        "own = [m.__file__ for n, m in sys.modules.items() if n.split('.')[0] in ('cdc_lake', 'resources', 'infra')]\n"
        "assert own and all(each.startswith(sys.argv[1]) for each in own), own\n"
        "assert 'dagster' not in sys.modules\n"
        "print(main.main.__name__, sorted(main.job_call.JOBS))\n"
    )
    command = [sys.executable, "-I", "-c", program, str(tmp_path / "code.zip")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"main {sorted(job_call.JOBS)}\n"


def test_objects_are_named_by_their_hash_and_uploaded_once(s3: MemoryS3, tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("hudi-1.jar", "hadoop-aws-3.3.4.jar", "aws-java-sdk-s3-1.jar", "kafka-clients-3.jar"):
        (jars / name).write_bytes(name.encode())
    (tmp_path / "aws-msk-iam-auth-2.jar").write_bytes(b"iam")
    (tmp_path / "main.py").write_text("print()")
    code = EmrCode(
        root=str(package(tmp_path / "code")),
        packages=["shop"],
        entry=str(tmp_path / "main.py"),
        jars=str(jars),
        more_jars=[str(tmp_path / "aws-msk-iam-auth-2.jar")],
    )
    found = code.upload(files(s3))
    names = [uri.rpartition("/")[2] for uri in found.jars]
    assert names == ["hudi-1.jar", "kafka-clients-3.jar", "aws-msk-iam-auth-2.jar"]
    for uri in (found.entry, found.archive, *found.jars):
        key = uri.removeprefix("s3://")
        assert hashlib.sha256(s3.objects[key]).hexdigest().startswith(key.split("/")[-2])
    before = dict(s3.objects)
    assert code.upload(files(s3)) == found
    assert s3.objects == before
    (tmp_path / "main.py").write_text("print(2)")
    assert code.upload(files(s3)).entry != found.entry
    assert found.entry.removeprefix("s3://") in s3.objects


def test_missing_jars_are_reported(s3: MemoryS3, tmp_path: Path) -> None:
    folder = package(tmp_path)
    code = EmrCode(
        root=str(folder), packages=["shop"], entry=str(folder / "shop" / "a.py"), jars=str(tmp_path / "none")
    )
    with pytest.raises(ResourceError, match=r"the folder for Spark's jars \(.*none\) contains no jars"):
        code.upload(files(s3))
