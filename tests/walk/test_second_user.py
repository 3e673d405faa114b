"""A second user: with another umask, in a folder whose name has spaces, and beside a checkout that is read-only."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from shell import Shell

BOUND = "--bounding-set=-dac_override,-dac_read_search,-fowner"  # without these root, too, asks a file's mode
SOME = ("table1", "figure2")  # of stf: a table and a figure, whose files are made again


def forget_some(project: Path) -> list[Path]:
    """Delete the files of some targets; their paths below the project."""
    files = [path for name in SOME for path in (project / "results/paper/targets/stf").glob(f"{name}.*")]
    for path in files:
        path.unlink()
    return [path.relative_to(project) for path in files if ".record." not in path.name]


@pytest.mark.parametrize("mask", [0o077, 0o000], ids=oct)
def test_another_umask_makes_the_same_bytes_and_modes_of_its_own(built_project, copied, tmp_path, mask):
    project = copied(tmp_path / "clpapers")
    user = Shell(project, built_project / ".venv", tmp_path, umask=mask)
    files = forget_some(project)
    user.ok("snakemake stf --cores --config hours=0")
    assert [path for path in files if (project / path).read_bytes() != (built_project / path).read_bytes()] == []
    assert {oct((project / path).stat().st_mode & 0o777) for path in files} == {oct(0o666 & ~mask)}
    assert " 0 failures" in user.ok("clpapers audit stf/table1")


def test_a_folder_with_spaces_and_letters_beyond_ascii(built_project, copied, installed, tmp_path):
    project = copied(tmp_path / "Zoë and her papers")
    user = installed(project, tmp_path)
    files = forget_some(project)
    user.ok("make")
    assert [path for path in files if (project / path).read_bytes() != (built_project / path).read_bytes()] == []
    assert " 0 failures" in user.ok("clpapers audit")
    user.ok("clpapers new method mine --folder 'her methods'")
    assert "twice the same bytes" in user.ok("clpapers try 'her methods/mine.py'")
    user.ok("snakemake stf/table1 --cores --config 'methods=[her methods/mine.py]' hours=2 -n")


def test_a_checkout_that_is_read_only_serves_a_folder_elsewhere(copied, installed, tmp_path):
    project = copied(tmp_path / "clpapers")
    shutil.rmtree(project / "results/paper/methods", ignore_errors=True)  # copies that other walks left in the build
    user = installed(project, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    before = ()
    if os.geteuid() == 0:
        before = ("setpriv", BOUND, "--")
        if not shutil.which("setpriv") or subprocess.run([*before, "true"], capture_output=True).returncode:
            pytest.skip("root may write everywhere here: no setpriv, or not the right to give that up")
    user = user._replace(folder=tmp_path / "elsewhere", before=before)
    files = sorted(path for path in project.rglob("*") if not path.is_symlink())
    subprocess.run(["chmod", "-R", "a-w", project], check=True)
    try:
        assert user.run(f"echo >> '{project}/README.md'").code != 0
        user.ok("clpapers new method mine")
        assert "twice the same bytes" in user.ok("clpapers try mine.py")
        user.ok("clpapers stream --paper stf --dataset cifar10 --seeds 0-1 --out streams")
        compared = user.ok("""python -c "from clpapers import results; print(len(results.compare('stf/table1')))" """)
        assert int(compared) > 20
        user.ok("""python -c "from clpapers import results; print(len(results.runs('stf/table1')))" """)
        assert "stf/table1" in user.ok("clpapers next stf/table1")
        for place, command in [
            (user.folder, "clpapers next stf/table1 --methods mine.py"),  # its copy and its costs are kept for builds
            (project, "snakemake report --cores"),
        ]:
            said = user._replace(folder=place).run(command)
            assert said.code != 0
            assert "Permission denied" in said.err
            assert len(said.err.splitlines()) == 1, said.err
    finally:
        subprocess.run(["chmod", "-R", "u+w", project], check=True)
    assert sorted(path for path in project.rglob("*") if not path.is_symlink()) == files
    assert sorted(path.name for path in user.folder.iterdir()) == ["mine.py", "streams"]
