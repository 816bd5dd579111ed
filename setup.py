"""What `scrapyd-deploy` builds its egg with; all else is built from `pyproject.toml` alone.

Without this file it writes one that packs the benchmarks and leaves out everything that is not Python.
Name, version and entry points are read from `pyproject.toml`, which takes setuptools 77 or newer.
"""

from setuptools import find_packages, setup

setup(
    packages=find_packages(include=["amicrawl", "amicrawl.*"]),
    package_data={
        "amicrawl": [
            "py.typed",
            "**/*.txt",
            "**/*.tmpl",
            "**/*.json",
            "**/*.css",
            "**/*.html",
            "**/*.js",
            "**/*.svg",
            "**/*.sql",
            "**/*.lua",
        ]
    },
    zip_safe=True,
)
