"""Read ComfyUI's replies: the state and the files of a job, errors, and jobs that it has lost."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from penstock.providers.spec import FailureKind, File, Reply, Result, Status

STATUS: dict[str, Status] = {
    "pending": "queued",
    "in_progress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


def read_job(reply: Reply) -> Result:
    """Read a new job, which has only an id, or the state of a job. Nodes list their files, also videos as `images`.

    A job that the server does not know will not come back: it keeps its jobs in memory.
    """
    if reply.status == 404:
        return Result(status="failed", message=_lost_message(reply))
    job = reply.json
    if "prompt_id" in job:
        return Result(status="queued", ref={"id": job["prompt_id"]}, upstream_id=job["prompt_id"])
    lists = [
        outputs
        for node in (job.get("outputs") or {}).values()
        for outputs in node.values()
        if isinstance(outputs, list)
    ]
    files = [output for outputs in lists for output in outputs if isinstance(output, dict) and "filename" in output]
    files = [file for file in files if file.get("type") == "output"] or files  # previews beside them are not wanted
    queries = [urlencode({name: file.get(name, "") for name in ("filename", "subfolder", "type")}) for file in files]
    return Result(
        status=STATUS[job["status"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=f"/view?{query}", private=True) for query in queries),
        message=(job.get("execution_error") or {}).get("exception_message"),
    )


def _lost_message(reply: Reply) -> str:
    """Why the server does not know a job. Raises KeyError or DecodeError if the reply is not its own."""
    if reply.body in (b"404: Not Found", b""):  # it depends on the version of its web server
        return "This ComfyUI does not show the state of jobs; version 0.7 or later does."
    if reply.json["error"] != "Job not found":
        raise KeyError("error")
    return "ComfyUI no longer knows the job: it was restarted, or its queue or history was cleared."


def error_message(reply: Reply) -> str | None:
    """The message of an error response and of each node, without the lists of the server's files."""
    error = reply.json["error"]
    if isinstance(error, str):
        return error
    nodes = (reply.json.get("node_errors") or {}).values()
    node_messages = [f"{node['class_type']}: {_problem_text(problem)}" for node in nodes for problem in node["errors"]]
    return f"{error['message']}. {'; '.join(node_messages)}".strip()


def _problem_text(problem: Mapping[str, Any]) -> str:
    """The message and the value that it is about, such as the name of a model's file."""
    value = (problem.get("extra_info") or {}).get("received_value")
    return f"{problem['message']}: {value}" if isinstance(value, str) else str(problem["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    """A graph that the server cannot run is not the caller's mistake: the graphs are the gateway's."""
    return "broken" if reply.status == 400 else None
