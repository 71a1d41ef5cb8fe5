"""``foretide submit``: spark-submit with Foretide attached, without a line of code in the
application.

spark-submit runs this file as the application; it runs the user's own file as ``__main__`` with its
arguments, and attaches to the first session that file makes. Settings come from
``--conf spark.foretide.*``; the exit code is the application's.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretide.errors import ForetideError, InvalidConfig

if TYPE_CHECKING:
    from foretide.spark.attach.attachment import Attachment

SWITCHES = {"--supervise", "--verbose", "-v", "--version", "--help", "-h", "--usage-error"}
"""spark-submit's options without a value; every other one takes one."""


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """spark-submit's options, the application, its own arguments.

    >>> split_arguments(["--conf", "a=b", "-v", "--master=yarn", "app.py", "--conf", "mine"])
    (['--conf', 'a=b', '-v', '--master=yarn'], 'app.py', ['--conf', 'mine'])
    """
    options: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        options.append(option)
        if option not in SWITCHES and "=" not in option and rest:
            options.append(rest.pop(0))
    if not rest:
        raise InvalidConfig(
            "no application: foretide submit [spark-submit options] app.py [its arguments]"
        )
    return options, rest[0], rest[1:]


def submission(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment that submit an application with Foretide attached."""
    options, application, own = split_arguments(arguments)
    if not application.endswith(".py"):
        raise InvalidConfig(
            f"{application} is no Python file: foretide submit attaches to Python applications"
        )
    if "cluster" in (b for a, b in pairwise(options) if a == "--deploy-mode"):
        raise InvalidConfig(
            "foretide submit needs the driver on this machine (--deploy-mode client); in cluster "
            "mode, write foretide.attach(spark) in the application"
        )
    if not Path(application).is_file():
        raise InvalidConfig(f"there is no file {application}")
    home = environment.get("SPARK_HOME") or _home()
    command = [str(Path(home) / "bin" / "spark-submit"), *options, __file__, application, *own]
    return command, {"PYSPARK_DRIVER_PYTHON": sys.executable, **environment}


def _home() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent)


def submit(arguments: Sequence[str]) -> None:
    """Become spark-submit: signals and the exit code are the application's own."""
    command, environment = submission(arguments, os.environ)
    os.execve(command[0], command, environment)


class _FirstSession:
    """Attaches to the first session that an application makes."""

    def __init__(self) -> None:
        self.attachment: Attachment | None = None

    def watch(self) -> None:
        from pyspark.sql import SparkSession

        make = SparkSession.Builder.getOrCreate

        @functools.wraps(make)
        def get_or_create(builder: Any) -> Any:
            spark = make(builder)
            if self.attachment is None:
                self._attach(spark)
            return spark

        setattr(SparkSession.Builder, "getOrCreate", get_or_create)  # noqa: B010

    def _attach(self, spark: Any) -> None:
        from foretide.spark.attach.attachment import attached
        from foretide.spark.attach.settings import settings_of

        try:
            settings = settings_of(dict(spark.sparkContext.getConf().getAll()))
            self.attachment = attached(spark, settings)
        except ForetideError as error:
            print(f"foretide submit: {error}", file=sys.stderr)
            raise SystemExit(2) from None

    def close(self) -> None:
        if self.attachment is not None:
            self.attachment.stop()


def main(arguments: Sequence[str]) -> None:
    """Run an application with its arguments, attached."""
    application = arguments[0]
    session = _FirstSession()
    session.watch()
    sys.argv = list(arguments)
    sys.path[0] = str(Path(application).resolve().parent)
    try:
        runpy.run_path(application, run_name="__main__")
    finally:
        session.close()


if __name__ == "__main__":
    main(sys.argv[1:])
