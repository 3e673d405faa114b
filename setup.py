"""Puts the parts of the project that an installed package needs into it: configuration, schemas, published metrics."""

import os
import shutil
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

CARRIED = ("config", "workflow/schemas", "results/published/metrics")


class WithProject(build_py):
    """Copies them to `clpapers/project`; an editable install finds them in its checkout."""

    def run(self):
        super().run()
        for part in () if self.editable_mode else filter(os.path.isdir, CARRIED):
            place = Path(self.build_lib, "clpapers/project", part)
            shutil.copytree(part, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("outside"))


class Elsewhere(build):
    """Builds in a folder that ends with the process: the checkout stays as it was, and no earlier build travels."""

    folder = tempfile.TemporaryDirectory(prefix="clpapers-build-")

    def initialize_options(self):
        super().initialize_options()
        self.build_base = self.folder.name


class Described(egg_info):
    """Describes the package there too."""

    def initialize_options(self):
        super().initialize_options()
        self.egg_base = Elsewhere.folder.name


setup(cmdclass={"build": Elsewhere, "build_py": WithProject, "egg_info": Described})
