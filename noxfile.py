"""Every check of the repository, one session each; `nox -l` lists them."""

import os
import shutil
import sys
import zipfile
from pathlib import Path

import nox

LIBRARY = "libs/dagster-dataframely"
FEWER = "--examples=100"
"""Of the random tests, where they ran on other versions already."""
MANAGERS = ["dagster-polars", "dagster-duckdb-polars"]
SUPPORTED = nox.project.python_versions(nox.project.load_toml(f"{LIBRARY}/pyproject.toml"))


def find_pythons() -> list[str]:
    """Return the supported Pythons on this machine, oldest first; pyenv's own folders count."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    # A pyenv shim fails for a version that is installed but not active: real folders go first.
    folders = [
        str(path) for version in SUPPORTED for path in pyenv.glob(f"versions/{version}.*/bin")
    ]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    found = [version for version in SUPPORTED if shutil.which(f"python{version}")]
    if not found:
        sys.exit(f"No Python {' or '.join(SUPPORTED)} found. Install one: nox downloads none.")
    return found


os.environ["UV_PYTHON_DOWNLOADS"] = "never"
# Without bytecode every process compiles what it imports again, and the tests start many.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
PYTHONS = find_pythons()
OLDEST, NEWEST = PYTHONS[0], PYTHONS[-1]

nox.needs_version = ">=2026.2"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"


def sync(session: nox.Session, *options: str) -> None:
    """Install exactly what `uv.lock` says into the session's environment."""
    venv = session.virtualenv.location
    command = ["uv", "sync", "--frozen", f"--python={venv}", *options]
    session.run_install(*command, env={"UV_PROJECT_ENVIRONMENT": venv})


def install_browser(session: nox.Session) -> None:
    """Install Debian's Chromium where there is none, as a machine that runs checks as root can."""
    browsers = filter(shutil.which, ["chromium", "chromium-browser", "google-chrome"])
    if shutil.which("chromedriver") and any(browsers):
        return
    packages = ["chromium", "chromium-driver"]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        session.error(
            f"Chromium and chromedriver are missing: apt-get install {' '.join(packages)}"
        )
    session.run("apt-get", "update", "-qq", external=True)
    options = ["install", "-y", "-qq", "--no-install-recommends"]
    session.run("apt-get", *options, *packages, external=True)


@nox.session(python=OLDEST)
def lint(session: nox.Session) -> None:
    """Check the lock, style, format and the layers of the library."""
    sync(session)
    session.run("uv", "lock", "--check")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session(python=OLDEST)
def types(session: nox.Session) -> None:
    """Type-check the library, its tests, the example and this file, strictly."""
    sync(session)
    session.run("mypy")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the library's tests on the locked versions, and their coverage; the example's on one."""
    sync(session)
    options = ["--cov=dagster_dataframely"] if session.python == OLDEST else [FEWER]
    # The session `warehouse` runs the example on the oldest Python.
    tests = [LIBRARY, "examples"] if session.python == NEWEST else [LIBRARY]
    session.run("pytest", "-n2", *options, *tests, *session.posargs)


@nox.session(python=OLDEST)
def minimums(session: nox.Session) -> None:
    """Run the library's tests on the lowest versions that it and its extras allow."""
    library = f"{LIBRARY}[parquet,duckdb]"
    session.install("--resolution=lowest-direct", "--editable", library, "--group=test")
    session.run("pytest", "-n2", FEWER, f"{LIBRARY}/tests", *session.posargs)


@nox.session(python=NEWEST)
@nox.parametrize("managers", [[], MANAGERS], ids=["library", "managers"])
def newest(session: nox.Session, managers: list[str]) -> None:
    """Run the library's tests on the newest versions, and the site's IO managers for these."""
    # Two sets, since dagster-duckdb-polars pins one dagster release and may lag behind it.
    session.install("--editable", LIBRARY, "--group=test", *managers)
    if managers:
        session.run("python", "-W", "error", "docs/snippets/newest_versions.py")
    else:
        tests = [f"{LIBRARY}/tests", "-m", "not io_managers"]
        session.run("pytest", "-n2", FEWER, *tests, *session.posargs)


@nox.session(python=OLDEST)
def warehouse(session: nox.Session) -> None:
    """Run the example's main job."""
    sync(session)
    session.run("python", "-m", "warehouse", *session.posargs)


@nox.session(python=OLDEST)
def package(session: nox.Session) -> None:
    """Build the wheel and run what its users run against it instead of `src`."""
    folder = session.create_tmp()
    session.run("uv", "build", "--clear", "--package=dagster-dataframely", f"--out-dir={folder}")
    wheel = next(Path(folder).glob("*.whl"))
    if "dagster_dataframely/py.typed" not in zipfile.ZipFile(wheel).namelist():
        session.error("The wheel has no py.typed.")
    session.install(f"{wheel}[parquet,duckdb]", "--group=test")
    # Every test passed on these sources already: a file that the wheel lacks shows in these.
    names = ["public/test_surface.py", "public/test_examples.py", "run/test_exits.py", "infer"]
    used = [f"{LIBRARY}/tests/{name}" for name in names]
    session.run("pytest", "-n2", *used, *session.posargs)


@nox.session(python=OLDEST)
def docs(session: nox.Session) -> None:
    """Run the site's examples, build it strictly, look at each page, and lint the workflow."""
    sync(session, "--group=docs")
    install_browser(session)
    session.run("mypy", "docs/checks")
    examples = [f"{LIBRARY}/tests/public/test_examples.py", "docs/snippets/testing_orders.py"]
    session.run("pytest", "-n2", "document_tests", *examples, *session.posargs)
    session.run("mkdocs", "build", "--strict")
    session.run("pytest", "docs/checks")


@nox.session(python=OLDEST, default=False)
def fuzz(session: nox.Session) -> None:
    """Try 10,000 examples in each random test, other ones each time, or as many as asked for."""
    sync(session)
    tests = [f"{LIBRARY}/tests/validation/test_{name}.py" for name in ("properties", "random_runs")]
    session.run("pytest", "-n2", *tests, "--fuzz-examples=10000", *session.posargs)


@nox.session(python=OLDEST, default=False)
def screenshots(session: nox.Session) -> None:
    """Take the site's pictures of Dagster's UI, after a run of the main job."""
    sync(session, "--group=docs")
    install_browser(session)
    session.env["WAREHOUSE_DIR"] = str(Path(session.create_tmp(), "warehouse"))
    session.run("python", "-m", "warehouse")
    session.run("python", "docs/checks/take_screenshots.py")


@nox.session(python=OLDEST, default=False)
def serve(session: nox.Session) -> None:
    """Serve what the main job left in Dagster's UI."""
    sync(session)
    session.run("python", "-m", "warehouse", "serve", *session.posargs)


@nox.session(python=OLDEST, default=False)
def distributed(session: nox.Session) -> None:
    """Start the example's deployment without Docker, and fill its grid on two executors."""
    sync(session, "--group=distributed")
    rehearse = ["python", "examples/warehouse/deployment/rehearse.py"]
    session.run(*rehearse, interrupt_timeout=90)  # It stops what it started.


@nox.session(python=OLDEST, default=False)
def bench(session: nox.Session) -> None:
    """Measure what validation costs beside plain assets and other libraries; `--help` says more."""
    sync(session)
    folder = session.create_tmp()
    session.run("python", "-m", "benchmarks", f"--work={folder}", *session.posargs)
