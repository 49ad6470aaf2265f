"""Launch backfills and runs over the webserver's API, and wait for their end."""

import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

from processes import wait_for

PATIENCE = 3600
"""Seconds to wait for runs."""
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "warehouse"}

LAUNCH_BACKFILL = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
BACKFILL = """
query Backfill($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status error { message } runs(limit: 100) { status } }
  }
}
"""
LAUNCH_RUN = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { id } }
    ... on PythonError { message }
  }
}
"""
RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
LOADED = "query Loaded($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { __typename } }"


class Webserver:
    """The GraphQL API of Dagster's webserver."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/graphql"

    def is_loaded(self) -> bool:
        return bool(self._ask(LOADED, key=_key("flights"))["__typename"] == "AssetNode")

    def backfill_job(self, job: str, partitions: Sequence[str]) -> tuple[str, list[str]]:
        name = f"{job}_partition_set"
        return self._backfill(
            partitions, selector={"partitionSetName": name, "repositorySelector": REPOSITORY}
        )

    def backfill_asset(self, asset: str, partitions: Sequence[str]) -> tuple[str, list[str]]:
        return self._backfill(partitions, assetSelection=[_key(asset)])

    def _backfill(self, partitions: Sequence[str], **target: Any) -> tuple[str, list[str]]:
        """Wait until the daemon has brought it to its end; its status, and each run's."""
        launched = self._ask(LAUNCH_BACKFILL, params={"partitionNames": partitions, **target})
        if launched["__typename"] != "LaunchBackfillSuccess":
            raise RuntimeError(launched)
        ended = self._wait(
            lambda: self._ask(BACKFILL, id=launched["backfillId"]),
            {"REQUESTED", "COMPLETING", "CANCELING", "FAILING"},
        )
        return ended["status"], [run["status"] for run in ended["runs"]]

    def run(self, job: str, assets: Sequence[str] = ()) -> str:
        """Wait until the run, which goes through the daemon's queue, has ended; its status."""
        selector: dict[str, Any] = {**REPOSITORY, "jobName": job}
        if assets:
            selector["assetSelection"] = [_key(asset) for asset in assets]
        launched = self._ask(LAUNCH_RUN, params={"selector": selector})
        if launched["__typename"] != "LaunchRunSuccess":
            raise RuntimeError(launched)
        going = {"QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"}
        status: str = self._wait(lambda: self._ask(RUN, id=launched["run"]["id"]), going)["status"]
        return status

    def _wait(self, ask: Callable[[], dict[str, Any]], going: set[str]) -> dict[str, Any]:
        start, answer = time.monotonic(), ask()

        def has_ended() -> bool:
            answer.update(ask())
            return answer["status"] not in going

        wait_for("the end of runs", has_ended, PATIENCE)
        print(f"{answer['status']} in {time.monotonic() - start:.0f} s", flush=True)
        return answer

    def _ask(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
        if "errors" in answer:
            raise RuntimeError(answer["errors"])
        (data,) = answer["data"].values()
        return dict(data)


def _key(asset: str) -> dict[str, list[str]]:
    return {"path": [asset]}
