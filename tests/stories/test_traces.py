"""A trace that goes on after kill -9: the spans of two processes, as a collector receives them."""

from collections import deque

from tests.fake_providers.scripted import ScriptedProvider
from tests.gateway import sqlite_only
from tests.otlp_receiver import otlp_receiver
from tests.stories.processes import Installation, until

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
VIDEO = {"model": "video-1", "prompt": "a train", "seconds": 1}


@sqlite_only
def test_a_video_of_a_killed_process_ends_in_the_trace_in_which_it_began(
    story: Installation, lab: ScriptedProvider
) -> None:
    lab.states = ("in_progress 40",)
    with otlp_receiver() as collector:
        with story.serving(**collector.environ) as served:
            video_id = served.call("POST", "/compat/v1/videos", VIDEO, headers=HEADERS).json["id"]
            until(lambda: bool(collector.named("poll")))  # its attempt runs, and its span was not sent yet
            served.kill()
        polls = len(collector.named("poll"))
        for job in lab.video_jobs.values():
            job.states = deque(["completed"])
        with story.serving(**collector.environ) as served:
            until(lambda: served.call("GET", f"/compat/v1/videos/{video_id}").json["status"] == "completed")
            assert served.stop() == 0
    spans = [span for span in collector.spans if span.trace_id == TRACE]
    (call,) = [span for span in spans if span.name == "POST /compat/v1/videos"]
    assert call.parent_id == "b7ad6b7169203331"
    assert len([span for span in spans if span.name == "poll"]) > polls
    (attempt,) = collector.named("generate_content reel-1")  # of the second process: that of the first died with it
    assert (attempt.trace_id, attempt.parent_id) == (TRACE, call.span_id)
    assert collector.children(call) == ["accept", "commit", "generate_content reel-1", "validate"]
    assert len(collector.named("submit")) == 1
