"""An operation whose result has a URL of its own."""

from penstock.providers.spec import File, Operation, Reply, Result


def read(reply: Reply) -> Result:
    if "status" in reply.json:
        return Result(status=reply.json["status"], ref={"id": "7"})
    return Result(files=tuple(File(url=url) for url in reply.json["urls"]))


OP = Operation(
    task="video", send="POST /jobs", poll="GET /jobs/{id}", fetch="GET /jobs/{id}/result", params=(), read=read
)
