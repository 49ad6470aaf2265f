"""Every check of the repository, one session each; `nox -l` lists them."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import nox

LIBRARY = "libs/dagster-dataframely"
FEWER = "--examples=100"
"""Of the random tests, where they ran on other versions already."""
FULL: dict[str, Any] = {"default": False, "tags": ["full"]}
"""For sessions that `nox` leaves to `nox -t full`."""
TESTED = [LIBRARY, "examples", "document_tests", "docs/snippets/testing_orders.py"]
MANAGERS = ["dagster-polars", "dagster-duckdb-polars"]
SUPPORTED = nox.project.python_versions(nox.project.load_toml(f"{LIBRARY}/pyproject.toml"))
LISTS = not {"-l", "--list", "--list-sessions", "-h", "--help"}.isdisjoint(sys.argv)


def find_pythons() -> list[str]:
    """Return the Pythons to use, oldest first: what is here, or one that uv can fetch."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    newer = [f"3.{minor}" for minor in range(int(SUPPORTED[-1][2:]) + 1, 30)]
    # A pyenv shim fails for a version that is installed but not active: real folders go first.
    folders = [path for v in [*SUPPORTED, *newer] for path in pyenv.glob(f"versions/{v}.*/bin")]
    # uv is next to nox, in an environment that need not be active.
    prepend(Path(sys.executable).parent, *folders)
    if found := [version for version in SUPPORTED if shutil.which(f"python{version}")]:
        return found
    if LISTS or fetch(SUPPORTED[0]):
        return SUPPORTED[:1]
    if found := [version for version in newer if shutil.which(f"python{version}")]:
        print(f"Python {found[0]} is untested: no Python {' or '.join(SUPPORTED)} was found.")
        return found[:1]
    print(f"No Python {' or '.join(SUPPORTED)} was found, and uv could not fetch one. Install one.")
    return SUPPORTED[:1]


def fetch(version: str) -> bool:
    """Whether uv can fetch a Python, and does."""
    print(f"No Python {' or '.join(SUPPORTED)} was found: uv fetches {version}.", flush=True)
    try:
        subprocess.run(["uv", "python", "install", version], check=True)
        found = subprocess.check_output(["uv", "python", "find", version], text=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    prepend(Path(found.strip()).parent)
    return True


def prepend(*folders: Path) -> None:
    """Let programs be found in these folders first."""
    os.environ["PATH"] = os.pathsep.join([*map(str, folders), os.environ["PATH"]])


# Without bytecode every process compiles what it imports again, and the tests start many.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
PYTHONS = find_pythons()
os.environ["UV_PYTHON_DOWNLOADS"] = "never"
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


@nox.session(python=OLDEST)
def tests(session: nox.Session) -> None:
    """Run the tests of the library, the example and the documents, on the locked versions."""
    sync(session)
    session.run("pytest", "-n2", FEWER, *TESTED, *session.posargs)


@nox.session(python=PYTHONS[1:] or PYTHONS, **FULL)
def coverage(session: nox.Session) -> None:
    """Run all tests of the library on each other Python, with all random examples and coverage."""
    sync(session)
    session.run("pytest", "-n2", "--cov=dagster_dataframely", LIBRARY, *session.posargs)


@nox.session(python=OLDEST, **FULL)
def minimums(session: nox.Session) -> None:
    """Run the library's tests on the lowest versions that it and its extras allow."""
    library = f"{LIBRARY}[parquet,duckdb]"
    session.install("--resolution=lowest-direct", "--editable", library, "--group=test")
    session.run("pytest", "-n2", FEWER, f"{LIBRARY}/tests", *session.posargs)


@nox.session(python=NEWEST, **FULL)
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


@nox.session(python=OLDEST, **FULL)
def warehouse(session: nox.Session) -> None:
    """Run the example's main job."""
    sync(session)
    session.run("python", "-m", "warehouse", *session.posargs)


@nox.session(python=OLDEST, **FULL)
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


@nox.session(python=OLDEST, **FULL)
def docs(session: nox.Session) -> None:
    """Build the site strictly, look at each page, and lint the workflow."""
    sync(session, "--group=docs")
    install_browser(session)
    session.run("mypy", "docs/checks")
    session.run("mkdocs", "build", "--strict")
    session.run("pytest", "docs/checks")


@nox.session(python=OLDEST, default=False)
def site(session: nox.Session) -> None:
    """Serve the site, built anew where a page changes, with no browser installed."""
    sync(session, "--group=docs")
    session.run("mkdocs", "serve", *session.posargs)


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


@nox.session(venv_backend="none", default=False)
def serve(session: nox.Session) -> None:
    """Serve what the session `warehouse` left in Dagster's UI."""
    python = Path(".nox/warehouse/bin/python")
    if not python.exists():
        session.error("There is nothing to serve yet: run nox -s warehouse first.")
    # It stops what it started.
    session.run(str(python), "-m", "warehouse", "serve", *session.posargs, interrupt_timeout=90)


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
